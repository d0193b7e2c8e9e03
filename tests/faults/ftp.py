"""An FTP server that answers each command as a test tells it to."""

import asyncio
from collections.abc import Awaitable, Callable

# What is said to a command, or, as a function, who talks instead.
Said = bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_HONEST: dict[str, Said] = {
    "": b"220 hello\r\n",
    "USER": b"331 your address, please\r\n",
    "PASS": b"230 welcome\r\n",
    "TYPE": b"200 as you like\r\n",
    "RETR": b"150 here it comes\r\n",
    "END": b"226 that was it\r\n",
}


def ftp(says=None, data=b"User-agent: *\nDisallow: /private\n"):
    """An honest server but for what `says` says: to a command, at the greeting (""), or after the data ("END")."""
    said = {**_HONEST, **(says or {})}

    async def say(what: Said, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if isinstance(what, bytes):
            writer.write(what)
            await writer.drain()
        else:
            await what(reader, writer)

    async def send_data(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await say(data, reader, writer)
        except OSError:
            pass
        finally:
            writer.close()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sending: list[asyncio.Task[None]] = []
        arrived: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
        passive = await asyncio.start_server(lambda *line: arrived.put_nowait(line), "127.0.0.1", 0)
        try:
            await say(said[""], reader, writer)
            while command := (await reader.readline()).decode().strip():
                verb = command.partition(" ")[0].upper()
                port = passive.sockets[0].getsockname()[1]
                unknown = (
                    f"229 on (|||{port}|)\r\n".encode() if verb == "EPSV" else b"502 no such command\r\n"
                )
                await say(said.get(verb, unknown), reader, writer)
                if verb == "RETR" and said["RETR"] == _HONEST["RETR"]:
                    sending.append(asyncio.ensure_future(send_data(*await arrived.get())))
                    await asyncio.wait(sending)
                    await say(said["END"], reader, writer)
        finally:
            passive.close()
            for task in sending:
                task.cancel()
            while not arrived.empty():
                arrived.get_nowait()[1].close()

    return talk
