// A crawler in TypeScript whose gate is `polite serve`: node crawl.ts GATE SEED... (node 23.6 or later)
// Example: node crawl.ts http://127.0.0.1:8700 https://example.com/
// It crawls the sites of the seeds, all at one time, and prints the status of each page. POLITE_SERVE_TOKEN is the gate's token.

type Permit = { id: string; url: string; deadline: number; headers: Record<string, string> };
type Answer = { status: number; retryAfter: number; value: any };

const [gate, ...seeds] = process.argv.slice(2);
if (seeds.length === 0) throw new Error("usage: node crawl.ts GATE SEED...");
const token = process.env.POLITE_SERVE_TOKEN;
const TRIES = 5;

async function ask(method: string, path: string, body?: object): Promise<Answer> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const response = await fetch(gate.replace(/\/$/, "") + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  const retryAfter = Number(response.headers.get("Retry-After") ?? 1);
  return { status: response.status, retryAfter, value: text ? JSON.parse(text) : {} };
}

const sleep = (seconds: number) => new Promise((wake) => setTimeout(wake, seconds * 1000));

/** Wait for the turn of a URL; or return why there is none: robots.txt disallows it, or stays out of reach. */
async function permit(url: string): Promise<Permit | string> {
  let left = 3;
  let answer = await ask("POST", "/v1/permits", { url });
  while (answer.status !== 200) {
    if (answer.status === 202) {
      answer = await ask("GET", answer.value.poll); // the turn has not come
    } else if (answer.status === 429 || (answer.status === 503 && left-- > 0)) {
      await sleep(answer.retryAfter);
      answer = await ask("POST", "/v1/permits", { url });
    } else if (answer.status === 403 || answer.status === 503) {
      return answer.status === 403 ? "disallowed" : "unavailable";
    } else {
      throw new Error(`${url}: ${answer.value.error}`);
    }
  }
  return answer.value;
}

/** Fetch a URL once, as its permit says; report the head at once, since the delay starts with it. */
async function request(url: string): Promise<{ status: number; links: string[] } | string> {
  const held = await permit(url);
  if (typeof held === "string") return held;
  const report = (said: object) => ask("POST", `/v1/permits/${held.id}`, said);
  let status = 0;
  try {
    const response = await fetch(held.url, { headers: held.headers, redirect: "manual" });
    status = response.status;
    await report({ status, headers: Object.fromEntries(response.headers), end: false });
    const body = await response.text();
    const hrefs = [...body.matchAll(/href="([^"]*)"/g)].map((found) => found[1].replaceAll("&amp;", "&"));
    const moved = response.headers.get("Location");
    const links = (moved ? [...hrefs, moved] : hrefs).flatMap((href) => URL.canParse(href, url) ? [new URL(href, url).href] : []);
    await report({ end: true });
    return { status, links };
  } catch (error) {
    await report(status ? { end: true } : { status: 0 });
    return { status: 0, links: [] };
  }
}

async function crawl(seed: string): Promise<void> {
  const origin = new URL(seed).origin;
  const queue = [new URL(seed).href];
  const tries = new Map<string, number>([[queue[0], 0]]);
  while (queue.length > 0) {
    const url = queue.shift()!;
    const page = await request(url);
    console.log(typeof page === "string" ? page : page.status, url);
    if (typeof page === "string") continue;
    const count = (tries.get(url) ?? 0) + 1;
    tries.set(url, count);
    if ([0, 429, 503].includes(page.status) && count < TRIES) queue.push(url);
    for (const link of page.links) {
      const found = link.split("#")[0];
      if (new URL(found).origin === origin && !tries.has(found)) {
        tries.set(found, 0);
        queue.push(found);
      }
    }
  }
}

await Promise.all(seeds.map(crawl));
