"""The MCP fetch server, which obeys robots.txt and has no delay to set: an agent calls `fetch`, one page after the other."""

import asyncio
import re
import sys
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVER = StdioServerParameters(
    command=str(Path(sys.executable).with_name("mcp-server-fetch")),
    args=["--user-agent", "JudgedBot/1.0 (+https://example.com/bot)", "--allow-private-ips"],
)


async def main(urls: list[str]) -> None:
    hosts = {urlsplit(url).hostname for url in urls}
    async with stdio_client(SERVER) as streams, ClientSession(*streams) as session:
        await session.initialize()
        for url in urls:  # it grows
            result = await session.call_tool("fetch", {"url": url, "raw": True})
            text = "".join(getattr(each, "text", "") for each in result.content)
            for link in re.findall('href="([^"]+)"', text):
                found = urljoin(url, link)
                if urlsplit(found).hostname in hosts and found not in urls:
                    urls.append(found)


asyncio.run(main(sys.argv[1:]))
