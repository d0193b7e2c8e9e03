"""Practice sites on loopback, and a judge that says from their log whether a crawl was polite: `polite judge`.

`verdict` judges what one host saw, `sites` has the sites and what each requires, `server` serves and logs them, and `report` sums
up. None of them knows the crawler: only requests and their times count.
"""

from polite.judge.report import Report
from polite.judge.server import Sites, serving
from polite.judge.sites import Host, practice_sites
from polite.judge.verdict import Expected, Request, Short, Verdict, judge, judge_all

__all__ = [
    "Expected",
    "Host",
    "Report",
    "Request",
    "Short",
    "Sites",
    "Verdict",
    "judge",
    "judge_all",
    "practice_sites",
    "serving",
]
