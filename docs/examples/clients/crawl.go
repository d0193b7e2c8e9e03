// A crawler in Go whose gate is `polite serve`: go run crawl.go GATE SEED... (Go 1.19 or later)
// It crawls the sites of the seeds, all at one time, and prints the status of each page. POLITE_TOKEN is the token of the gate.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
)

type object = map[string]any

var gate, href = strings.TrimRight(os.Args[1], "/"), regexp.MustCompile(`href="([^"#]*)`)
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// ask returns what the gate answers; after a refusal that passes, it waits as long as the gate says.
func ask(method, path string, body object) (status int, found object) {
	octets, _ := json.Marshal(body)
	request, _ := http.NewRequest(method, gate+path, strings.NewReader(string(octets)))
	request.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + os.Getenv("POLITE_TOKEN")}}
	response, err := client.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	json.NewDecoder(response.Body).Decode(&found)
	wait, _ := time.ParseDuration(response.Header.Get("Retry-After") + "s")
	time.Sleep(wait)
	return response.StatusCode, found
}

// permit waits for the turn of a URL, and returns it. The status is 403 if robots.txt disallows the URL.
func permit(page string) (_ string, status int, found object) {
	for status = 503; status == 429 || status == 503; {
		status, found = ask("POST", "/v1/permits", object{"url": page})
		for status == 202 {
			status, found = ask("GET", found["poll"].(string), nil) // the turn has not come
		}
	}
	return page, status, found
}

// fetch sends one request, as its permit says, and reports the head at once, since the delay starts with it.
func fetch(held object) (status int, body []byte) {
	sent, place, said := held["url"].(string), "/v1/permits/"+held["id"].(string), object{"status": 0}
	request, _ := http.NewRequest("GET", sent, nil)
	exact := sent[strings.Index(sent, "://")+3+len(request.URL.Host):] // letter by letter
	request.URL = &url.URL{Scheme: request.URL.Scheme, Host: request.URL.Host, Opaque: exact}
	for name, value := range held["headers"].(object) {
		request.Header.Set(name, value.(string))
	}
	if response, err := client.Do(request); err == nil {
		status, said = response.StatusCode, object{"end": true}
		ask("POST", place, object{"status": status, "headers": response.Header, "end": false})
		body, _ = io.ReadAll(io.LimitReader(response.Body, 5_000_000))
		response.Body.Close()
	}
	ask("POST", place, said)
	return status, body
}

func crawl(seed string, done func()) {
	defer done()
	queue, tries := []string{seed}, map[string]int{seed: 1}
	for ; len(queue) > 0; queue = queue[1:] {
		page, granted, held := permit(queue[0])
		if granted != 200 {
			fmt.Println("disallowed", page)
			continue
		}
		status, body := fetch(held)
		fmt.Println(status, page)
		if tries[page]++; (status == 0 || status == 429 || status == 503) && tries[page] <= 5 {
			queue = append(queue, page)
		}
		base, _ := url.Parse(page)
		for _, found := range href.FindAllSubmatch(body, -1) {
			link, err := base.Parse(strings.ReplaceAll(string(found[1]), "&amp;", "&"))
			if err == nil && link.Host == base.Host && tries[link.String()] == 0 {
				tries[link.String()], queue = 1, append(queue, link.String())
			}
		}
	}
}

func main() {
	var sites sync.WaitGroup
	sites.Add(len(os.Args) - 2)
	for _, seed := range os.Args[2:] {
		go crawl(seed, sites.Done)
	}
	sites.Wait()
}
