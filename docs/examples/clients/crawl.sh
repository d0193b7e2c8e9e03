#!/bin/sh
# A crawler in shell whose gate is `polite serve`: sh crawl.sh GATE SEED... (needs curl 7.84 and jq 1.6)
# Example: sh crawl.sh http://127.0.0.1:8700 https://example.com/
# It crawls the sites of the seeds, one page after the other, and prints the status of each. POLITE_SERVE_TOKEN is the gate's token.
set -eu

gate=${1:?GATE is missing} && gate=${gate%/}
shift
tries=5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ask METHOD PATH [JSON]: print the status; the answer is in $work/answer, its header fields in $work/head.
ask() {
    curl --silent --max-time 90 --output "$work/answer" --dump-header "$work/head" --write-out '%{http_code}' \
        --request "$1" "$gate$2" ${3+--data "$3"} --header 'Content-Type: application/json' \
        ${POLITE_SERVE_TOKEN:+--header "Authorization: Bearer $POLITE_SERVE_TOKEN"}
}

retry_after() {
    sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9]*\).*/\1/p' "$work/head"
}

# permit URL: wait for the turn; fail if robots.txt disallows the URL, or is out of reach three times more, as $why says.
permit() {
    wanted=$(jq --null-input --compact-output --arg url "$1" '{url: $url}')
    status=$(ask POST /v1/permits "$wanted")
    left=3
    while [ "$status" != 200 ]; do
        case $status in
            202) status=$(ask GET "$(jq --raw-output .poll "$work/answer")") ;;
            429 | 503)
                why=unavailable
                [ "$status" = 429 ] || [ $((left -= 1)) -ge 0 ] || return 1
                sleep "$(retry_after)"
                status=$(ask POST /v1/permits "$wanted")
                ;;
            403) why=disallowed && return 1 ;;
            *)
                cat "$work/answer" >&2
                exit 1
                ;;
        esac
    done
}

# request: fetch once, as the permit in $work/answer says, and report; the status is in $status, the body in $work/body.
request() {
    id=$(jq --raw-output .id "$work/answer")
    jq --raw-output '.headers | to_entries[] | "header = " + (.key + ": " + .value | tojson)' "$work/answer" >"$work/config"
    jq --raw-output '"url = " + (.url | tojson)' "$work/answer" >>"$work/config"
    : >"$work/body"
    # With --path-as-is and --globoff the URL is sent as it was decided. A status of 0 tells that no response came.
    status=$(curl --silent --globoff --path-as-is --max-time 60 --output "$work/body" --config "$work/config" \
        --write-out '%{stderr}%{header_json}%{stdout}%{http_code}' 2>"$work/fields") || status=000
    [ "$status" != 000 ] || echo '{}' >"$work/fields"
    ask POST "/v1/permits/$id" "$(jq --compact-output --argjson status "$((1$status - 1000))" \
        '{status: $status, headers: .}' "$work/fields")" >"$work/reported"
}

# The queue is a file with a line for each URL; a URL that is tried again is added again.
printf '%s\n' "$@" >"$work/queue"
number=0
while number=$((number + 1)) && url=$(sed -n "${number}p" "$work/queue") && [ -n "$url" ]; do
    if ! permit "$url"; then
        echo "$why $url"
        continue
    fi
    request
    echo "$((1$status - 1000)) $url"
    case $status in
        000 | 429 | 503) [ "$(grep --count --line-regexp --fixed-strings -e "$url" "$work/queue")" -ge "$tries" ] ||
            echo "$url" >>"$work/queue" ;;
    esac
    origin=$(echo "$url" | sed 's|^\([a-z]*://[^/]*\).*|\1|')
    # Links of the same site, in the form /path.
    grep --only-matching 'href="/[^/"][^"#]*' "$work/body" | sed "s|^href=\"|$origin|; s|&amp;|\&|g" | while read -r link; do
        grep --quiet --line-regexp --fixed-strings -e "$link" "$work/queue" || echo "$link" >>"$work/queue"
    done
done
