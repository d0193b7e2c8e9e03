// A crawler in Go whose gate is `polite serve`: go run crawl.go GATE SEED... (Go 1.19 or later)
// It crawls the sites of the seeds, all at one time, and prints the status of each page. POLITE_SERVE_TOKEN is the gate's token.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
)

var sites, href = sync.WaitGroup{}, regexp.MustCompile(`href="([^"#]*)`)

// ask returns what the gate answers; after a refusal that passes, it waits as long as the gate says.
func ask(method, path string, body map[string]any) (status int, found map[string]any) {
	octets, _ := json.Marshal(body)
	request, _ := http.NewRequest(method, strings.TrimRight(os.Args[1], "/")+path, strings.NewReader(string(octets)))
	request.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + os.Getenv("POLITE_SERVE_TOKEN")}}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	json.NewDecoder(response.Body).Decode(&found)
	wait, _ := time.ParseDuration(response.Header.Get("Retry-After") + "s")
	time.Sleep(wait)
	return response.StatusCode, found
}

// permit waits for the turn of a URL. The status is 403 if robots.txt disallows it, and 503 if robots.txt stays out of reach.
func permit(page string) (_ string, status int, found map[string]any) {
	for tries := 0; tries == 0 || status == 429 || status == 503 && tries <= 3; tries++ {
		status, found = ask("POST", "/v1/permits", map[string]any{"url": page})
		for status == 202 {
			status, found = ask("GET", found["poll"].(string), nil) // the turn has not come
		}
	}
	return page, status, found
}

// fetch sends one request, as its permit says, and reports the head at once, since the delay starts with it.
func fetch(held map[string]any) (status int, body []byte) {
	sent, place, said := held["url"].(string), "/v1/permits/"+held["id"].(string), map[string]any{"status": 0}
	request, _ := http.NewRequest("GET", sent, nil)
	request.URL.RawQuery, request.URL.Opaque = "", sent[strings.Index(sent, "://")+3+len(request.URL.Host):] // letter by letter
	for name, value := range held["headers"].(map[string]any) {
		request.Header.Set(name, value.(string))
	}
	if response, err := http.DefaultTransport.RoundTrip(request); err == nil {
		status, said = response.StatusCode, map[string]any{"end": true}
		ask("POST", place, map[string]any{"status": status, "headers": response.Header, "end": false})
		body, _ = io.ReadAll(io.LimitReader(response.Body, 5_000_000))
		response.Body.Close()
	}
	ask("POST", place, said)
	return status, body
}

func crawl(seed string) {
	defer sites.Done()
	queue, tries := []string{seed}, map[string]int{seed: 1}
	for ; len(queue) > 0; queue = queue[1:] {
		page, granted, held := permit(queue[0])
		if granted == 403 || granted == 503 {
			fmt.Println(map[int]string{403: "disallowed", 503: "unavailable"}[granted], page)
			continue
		} else if granted != 200 {
			log.Fatal(page, ": ", held["error"])
		}
		status, body := fetch(held)
		fmt.Println(status, page)
		if tries[page]++; (status == 0 || status == 429 || status == 503) && tries[page] <= 5 {
			queue = append(queue, page)
		}
		base, _ := url.Parse(page)
		for _, found := range href.FindAllSubmatch(body, -1) {
			if link, err := base.Parse(strings.ReplaceAll(string(found[1]), "&amp;", "&")); err == nil && link.Host == base.Host && tries[link.String()] == 0 {
				tries[link.String()], queue = 1, append(queue, link.String())
			}
		}
	}
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: crawl GATE SEED...")
	}
	sites.Add(len(os.Args) - 2)
	for _, seed := range os.Args[2:] {
		go crawl(seed)
	}
	sites.Wait()
}
