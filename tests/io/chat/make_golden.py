#!/usr/bin/env python3
"""Makes the golden texts of chat templates with transformers and Jinja2.

    python3 -m venv venv && venv/bin/pip install transformers==4.57.1 jinja2==3.1.6
    venv/bin/python tests/io/chat/make_golden.py

renders conversations with the templates of tests/io/chat/templates, which have the forms that are
published for Llama 2, 3 and 3.1, Mistral, Qwen2, Qwen2.5, Gemma, Zephyr and ChatML, or try the
language, and the fragments of fragments.json without any, and writes what came out to
tests/io/chat/golden/*.json. An error is written as null.
"""
import json
import pathlib

from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "golden"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}

TOOLS = [{"type": "function", "function": {
    "name": "weather", "description": "The weather \"now\" – höchstens", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"]}, "return": {"type": "string"}}}]
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "abcdefghi", "type": "function", "function": {
        "name": "weather", "arguments": {"city": "München", "days": 3, "exact": 1.5}}}]}
USER = {"role": "user", "content": "  What is 2 + 2?\n"}
ANSWER = {"role": "assistant", "content": "It is 4.  "}
SYSTEM = {"role": "system", "content": "Answer briefly. أجب بإيجاز"}
MORE = {"role": "user", "content": "a <|im_end|> in </think> the\ttext {{ x }} {% if %} 船 \u200d👩!"}
CONVERSATIONS = {
    "short": ([USER, ANSWER], None), "asks": ([USER], None),
    "system": ([SYSTEM, USER, ANSWER, MORE, ANSWER], None),
    "two": ([USER, ANSWER, MORE, {"role": "assistant", "content": "\n\nlines\r\n\u00a0end\u3000"}],
            None),
    "tools": ([USER, CALL, {"role": "tool", "content": "21.5"}, ANSWER], TOOLS),
    "wrong": ([ANSWER, USER], None),
}


def rendered(template, **variables):
    try:
        return _compile_jinja_template(template).render(**TOKENS, **variables)
    except Exception:  # noqa: what Jinja refuses has no text
        return None


def case(template, name, messages, tools, asks):
    text = rendered(template, messages=messages, tools=tools, documents=None,
                    add_generation_prompt=asks)
    one = {"name": name, "messages": messages, "tools": tools, "asks": asks, "text": text}
    if "generation %}" in template and text is not None:
        _, spans = render_jinja_template([messages], chat_template=template,
                                         return_assistant_tokens_mask=True, **TOKENS)
        one["answers"] = [text[a:b] for a, b in spans[0]]
    return one


def write(name, value):
    (FOLDER / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def main():
    FOLDER.mkdir(exist_ok=True)
    for path in sorted((HERE / "templates").glob("*.jinja")):
        template = path.read_text()
        cases = [case(template, c, messages, tools, asks)
                 for c, (messages, tools) in CONVERSATIONS.items() for asks in (False, True)]
        write(path.stem, {"template": template, "tokens": TOKENS, "cases": cases})
    sources = json.loads((HERE / "fragments.json").read_text())
    write("fragments", [{"template": t, "text": rendered(t)} for t in sources])


if __name__ == "__main__":
    main()
