"""What FTP servers do wrong: rows of the fault matrix."""

from functools import partial
from typing import Any

from polite.robots.reason import Reason
from tests.faults.ftp import ftp
from tests.faults.row import allowed, denied, parsed
from tests.faults.stage import RULES, endless, http, ok, reset_after, silence, slowly

LONG = b"User-agent: *\nDisallow: /private\n"
spoken = partial(http, scheme="ftp", hears=b"")


async def _unconfirmed(_: Any, writer: Any) -> None:
    writer.close()


FTP = [
    parsed("102", "FTP: the file", spoken(ftp())),
    allowed("102a", "FTP: 550", spoken(ftp({"RETR": b"550 no such file\r\n"}))),
    denied("102b", "FTP: 421 as greeting", Reason.FTP_BUSY, spoken(ftp({"": b"421 too many users\r\n"}))),
    denied("102c", "FTP: 530 to the login", Reason.FTP_LOGIN_REFUSED, spoken(ftp({"USER": b"530 no\r\n"}))),
    denied(
        "102d",
        "FTP: a greeting without end",
        Reason.HEAD_TOO_LARGE,
        spoken(ftp({"": endless(b"", b"220-and another thing\r\n" * 50)})),
        heavy=True,
    ),
    denied(
        "102e",
        "FTP: a line without end",
        Reason.HEAD_TOO_LARGE,
        spoken(ftp({"": endless(b"220 ", b"x" * 5_000)})),
        heavy=True,
    ),
    denied(
        "102f",
        "FTP: a reply without end to a command",
        Reason.HEAD_TOO_LARGE,
        spoken(ftp({"PASS": endless(b"230-", b"welcome\r\n" * 50)})),
        heavy=True,
    ),
    denied("102g", "FTP: silence instead of a greeting", Reason.TIMEOUT, spoken(silence)),
    denied("102h", "FTP: data octet by octet", Reason.TIMEOUT, spoken(ftp(data=slowly(RULES * 10)))),
    denied("102i", "FTP: data reset on the way", Reason.BODY_CUT_SHORT, spoken(ftp(data=reset_after(RULES)))),
    denied(
        "102j", "FTP: 426 after the data", Reason.BODY_CUT_SHORT, spoken(ftp({"END": b"426 broken off\r\n"}))
    ),
    denied(
        "102k",
        "FTP: closed before it confirms the end of the data",
        Reason.BODY_CUT_SHORT,
        spoken(ftp({"END": _unconfirmed})),
    ),
    denied(
        "102l",
        "FTP: another host for the data, in the response to EPSV",
        Reason.ADDRESS_REFUSED,
        spoken(ftp({"EPSV": b"227 (10,0,0,1,4,1)\r\n"})),
    ),
    denied(
        "102m",
        "FTP: another host for the data, within the reply to EPSV",
        Reason.ADDRESS_REFUSED,
        spoken(ftp({"EPSV": b"229 (|1|10.0.0.1|1025|)\r\n"})),
    ),
    denied(
        "102n",
        "FTP: no extended passive mode",
        Reason.FTP_NO_PASSIVE,
        spoken(ftp({"EPSV": b"502 what?\r\n"})),
    ),
    denied(
        "102o", "FTP: port 0 for the data", Reason.PROTOCOL_ERROR, spoken(ftp({"EPSV": b"229 (|||0|)\r\n"}))
    ),
    denied("102p", "FTP: no reply, but HTTP", Reason.PROTOCOL_ERROR, spoken(ok())),
    denied("102q", "FTP: closed within a reply", Reason.CONNECTION_LOST, spoken(b"220 he")),
    denied("102r", "FTP: 550 to the type", Reason.SERVER_ERROR, spoken(ftp({"TYPE": b"550 no\r\n"}))),
    parsed(
        "102s",
        "FTP: a file without end: the first 512,000 octets count",
        spoken(ftp(data=endless(b"", LONG * 500))),
        heavy=True,
    ),
]
