"""An agent: a model chooses tools until it has an answer. Each call is a step.

    freehold migrate --app agent:app
    freehold worker --app agent:app
    freehold enqueue agent.answer question="How long do all open tickets take?" --app agent:app

A call of a model costs money, and a tool can have effects. After a crash the loop runs again from
its first line, gets the stored replies of all calls that have ended, and goes on with the next one.

There is no real model here: `call_model` is a local function with fixed rules, in the place of a
request to one. With FREEHOLD_URL the jobs are in PostgreSQL, otherwise in agent.db.
"""

import asyncio
import os
from dataclasses import dataclass

from freehold import Context, Fail, Freehold, Retry

app = Freehold(os.environ.get("FREEHOLD_URL") or "agent.db")
MAX_TURNS = 20
#: How long a tool takes.
TOOL_SECONDS = float(os.environ.get("TOOL_SECONDS") or 0.5)
TICKETS = {"A-1": 3, "A-2": 5, "A-3": 8}


@dataclass
class Message:
    role: str
    text: str


@dataclass
class Reply:
    """A tool with its argument, or the answer."""

    tool: str | None
    text: str


async def call_model(messages: list[Message]) -> Reply:
    """In the place of a real model: reads the results so far, and asks for what is missing."""
    print(f"model with {len(messages)} messages", flush=True)
    results = [message.text for message in messages if message.role == "tool"]
    if not results:
        return Reply("list_tickets", "open")
    tickets = results[0].split()
    if len(results) <= len(tickets):
        return Reply("read_ticket", tickets[len(results) - 1])
    if len(results) == len(tickets) + 1:
        return Reply("add", " ".join(results[1:]))
    return Reply(None, f"{results[-1]} days")


async def list_tickets(state: str) -> str:
    print(f"tool list_tickets {state}", flush=True)
    return " ".join(TICKETS)


async def read_ticket(name: str) -> str:
    print(f"tool read_ticket {name}", flush=True)
    await asyncio.sleep(TOOL_SECONDS)
    return str(TICKETS[name])


async def add(numbers: str) -> str:
    print(f"tool add {numbers}", flush=True)
    return str(sum(map(int, numbers.split())))


TOOLS = {"list_tickets": list_tickets, "read_ticket": read_ticket, "add": add}


@app.task(retry=Retry(max_attempts=10, base_seconds=1))
async def answer(question: str, *, ctx: Context) -> str:
    messages = [Message("user", question)]
    for turn in range(MAX_TURNS):
        reply = await ctx.step(f"model:{turn}", call_model, messages, retry=Retry(max_attempts=3))
        if reply.tool is None:
            return reply.text
        if reply.tool not in TOOLS:  # a real model invents some
            result = f"there is no tool {reply.tool}"
        else:
            result = await ctx.step(f"{reply.tool}:{turn}", TOOLS[reply.tool], reply.text)
        messages += [Message("assistant", f"{reply.tool} {reply.text}"), Message("tool", result)]
        ctx.progress(turn + 1, MAX_TURNS, reply.tool)
    raise Fail(f"no answer after {MAX_TURNS} turns")
