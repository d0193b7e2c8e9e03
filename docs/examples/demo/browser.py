"""A headless Chromium, driven over the DevTools protocol: opens a page, evaluates scripts, takes pictures."""

import asyncio
import base64
import json
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

# How long the browser may take to start, and one command (seconds).
_START_S, _COMMAND_S = 30.0, 20.0
_ADDRESS = re.compile(rb"DevTools listening on (ws://\S+)")
# No request of its own leaves this machine. As root there is no sandbox, and a container's /dev/shm is small.
_FLAGS = (
    "--headless",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
    "--metrics-recording-only",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-pings",
    "--no-proxy-server",
    "--no-sandbox",
    "--password-store=basic",
)


def chromium() -> str | None:
    """Return the path of an installed Chromium, if there is one."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class BrowserFailed(RuntimeError):
    """The browser did not start, or a command failed."""


class Page:
    """One tab.

    Attributes:
        messages: What the page wrote to its console, and errors of its scripts and of its security policy.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.messages: list[str] = []
        self._socket = socket
        self._session: str | None = None
        self._sent = 0
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def open_tab(self) -> None:
        """Open the tab. To be called once, while `listen` runs."""
        target = await self.call("Target.createTarget", url="about:blank")
        attached = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")

    async def listen(self) -> None:
        """Receive replies and events, until the browser ends."""
        async for message in self._socket:
            told = json.loads(message.data)
            waiter = self._replies.pop(told.get("id", 0), None)
            if waiter is not None and not waiter.done():
                waiter.set_result(told)
            elif told.get("method") == "Log.entryAdded":
                self.messages.append(told["params"]["entry"]["text"])
            elif told.get("method") == "Runtime.exceptionThrown":
                self.messages.append(json.dumps(told["params"]["exceptionDetails"]))
            elif told.get("method") == "Runtime.consoleAPICalled":
                self.messages.append(json.dumps(told["params"]["args"]))

    async def call(self, method: str, /, **parameters: object) -> dict[str, Any]:
        """Send one command, and return its result. Raises BrowserFailed."""
        self._sent += 1
        waiter = self._replies[self._sent] = asyncio.get_running_loop().create_future()
        command = {"id": self._sent, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        await self._socket.send_json(command)
        try:
            async with asyncio.timeout(_COMMAND_S):
                reply = await waiter
        except TimeoutError:
            raise BrowserFailed(f"{method}: no reply within {_COMMAND_S:g} s") from None
        if "error" in reply:
            raise BrowserFailed(f"{method}: {reply['error'].get('message')}")
        result: dict[str, Any] = reply["result"]
        return result

    async def show(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the window, and the colours that its user prefers."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def go(self, url: str) -> None:
        """Begin to load a URL."""
        await self.call("Page.navigate", url=url)

    async def evaluate(self, script: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value of an expression, after its promise."""
        result = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise BrowserFailed(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    async def until(self, script: str, *, limit_s: float = _COMMAND_S) -> None:
        """Wait until an expression is true. Raises BrowserFailed if it is not, for so long."""
        loop = asyncio.get_running_loop()
        end = loop.time() + limit_s
        while True:
            with suppress(BrowserFailed):
                if await self.evaluate(script):
                    return
            if loop.time() > end:
                raise BrowserFailed(f"not true within {limit_s:g} s: {script}; the page says {self.messages}")
            await asyncio.sleep(0.05)

    async def press(self, key: str) -> None:
        """Press and release a key, such as "/" or "Tab"."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}.get(key, 0)
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    async def type(self, text: str) -> None:
        """Type a text where the focus is."""
        await self.call("Input.insertText", text=text)

    async def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write a PNG of what the window shows, or of the whole page."""
        shot = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        await asyncio.to_thread(path.write_bytes, base64.b64decode(shot["data"]))


@asynccontextmanager
async def browsing(program: str) -> AsyncIterator[Page]:
    """Start the browser with a new profile, and open a tab. Raises BrowserFailed."""
    profile = await asyncio.to_thread(tempfile.mkdtemp, prefix="polite-chromium-")
    process = await asyncio.create_subprocess_exec(
        program,
        *_FLAGS,
        f"--user-data-dir={profile}",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "HOME": profile},
    )
    try:
        address = await _address(process)
        async with (
            # It asks no nameserver: the address is one of loopback.
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver())
            ) as session,
            session.ws_connect(address, max_msg_size=64 << 20) as socket,
        ):
            page = Page(socket)
            listening = asyncio.create_task(page.listen())
            reading = asyncio.create_task(_read_on(process))
            try:
                await page.open_tab()
                yield page
            finally:
                listening.cancel()
                reading.cancel()
                await asyncio.wait([listening, reading])
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        await process.wait()
        await asyncio.to_thread(shutil.rmtree, profile, ignore_errors=True)


async def _address(process: asyncio.subprocess.Process) -> str:
    """Return the address that the browser names."""
    said = b""
    if process.stderr is None:
        raise BrowserFailed("the browser has no standard error")
    try:
        async with asyncio.timeout(_START_S):
            while line := await process.stderr.readline():
                said = (said + line)[-2_000:]
                if found := _ADDRESS.search(line):
                    return found[1].decode()
    except TimeoutError:
        pass
    raise BrowserFailed(f"the browser did not start: {said.decode(errors='replace')[-500:]}")


async def _read_on(process: asyncio.subprocess.Process) -> None:
    """Read what the browser says, so that its pipe never fills."""
    while process.stderr is not None and await process.stderr.read(65_536):
        pass
