#!/usr/bin/python3
"""Checks JSON files that the program wrote, strictly: that they are JSON without the extensions of
Python's parser and without double keys, that they obey one of the schemas beside this script, in
which no key is optional or unknown that is not declared so, and, in results of benchmarks, that the
statistics follow from the samples. Prints each problem with its place; exits with 1 if there is
one.

    benchmarks/schema/validate.py [--as bench|accept|compare|history|history-line] FILE...

Files are results of `trireme bench -J FILE` unless --as says otherwise. With --as history-line,
each line of a file is a document, as in the files that `trireme history` keeps."""
import json
import math
import pathlib
import statistics
import sys

SCHEMAS = {kind: pathlib.Path(__file__).with_name(f"{kind}-{version}.schema.json")
           for kind, version in (("bench", 2), ("accept", 1), ("compare", 1), ("history", 1),
                                 ("history-line", 1))}
SCHEMA = SCHEMAS["bench"]
ROUNDING = 1e-8  # samples have nine digits, and a median can be the mean of two
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "const", "enum", "required",
         "properties", "additionalProperties", "items", "minItems", "maxItems", "minimum",
         "maximum", "exclusiveMinimum", "allOf", "if", "then"}


def parse(text):
    """Parses JSON, refusing NaN, Infinity and keys that stand twice in one object."""
    def refuse(word):
        raise ValueError(f"{word} is not JSON")

    def unique(pairs):
        keys = [key for key, _ in pairs]
        if len(set(keys)) != len(keys):
            raise ValueError(f"a key stands twice: {sorted(keys)}")
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)


def has_type(value, name):
    if name in ("number", "integer"):
        allowed = (int,) if name == "integer" else (int, float)
        return isinstance(value, allowed) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def one_or_more(value):
    return value if isinstance(value, list) else [value]


class Validator:
    """Knows those keywords of JSON Schema (2020-12) that the schemas use, and refuses a schema with
    others."""

    def __init__(self, schema):
        self.schema = schema

    def problems(self, value, schema=None, place="$"):
        schema = self.schema if schema is None else schema
        if set(schema) - KNOWN:
            raise ValueError(f"the schema uses unknown keywords: {set(schema) - KNOWN}")
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            yield from self.problems(value, self.schema["$defs"][name], place)
        yield from self.own_problems(value, schema, place)
        for each in schema.get("allOf", []):
            yield from self.problems(value, each, place)
        if "if" in schema and not any(self.problems(value, schema["if"], place)):
            yield from self.problems(value, schema["then"], place)
        if isinstance(value, dict):
            yield from self.object_problems(value, schema, place)
        if isinstance(value, list) and "items" in schema:
            for i, each in enumerate(value):
                yield from self.problems(each, schema["items"], f"{place}[{i}]")

    @staticmethod
    def own_problems(value, schema, place):
        types = one_or_more(schema.get("type", []))
        if types and not any(has_type(value, name) for name in types):
            yield f"{place}: {value!r:.60} is not of type {' or '.join(types)}"
        if "const" in schema and value != schema["const"]:
            yield f"{place}: {value!r:.60} is not {schema['const']!r}"
        if "enum" in schema and value not in schema["enum"]:
            yield f"{place}: {value!r:.60} is none of {schema['enum']}"
        if has_type(value, "number"):
            if value < schema.get("minimum", -math.inf) or value > schema.get("maximum", math.inf):
                yield f"{place}: {value} is out of range"
            if value <= schema.get("exclusiveMinimum", -math.inf):
                yield f"{place}: {value} is not above {schema['exclusiveMinimum']}"
        if isinstance(value, list) and not (
                schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf)):
            yield f"{place}: has {len(value)} items"

    def object_problems(self, value, schema, place):
        known = schema.get("properties", {})
        for key in schema.get("required", []):
            if key not in value:
                yield f"{place}: the key {key!r} is missing"
        for key, each in value.items():
            if key in known:
                yield from self.problems(each, known[key], f"{place}.{key}")
            elif schema.get("additionalProperties", True) is False:
                yield f"{place}: unknown key {key!r}"
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from self.problems(each, schema["additionalProperties"], f"{place}.{key}")


def rank_bounds(count):
    """The ranks of the interval's bounds among sorted samples, from 1 (as in statistics.h)."""
    spread = 1.96 * math.sqrt(count)
    return (max(math.floor((count - spread) / 2), 1),
            min(math.ceil(1 + (count + spread) / 2), count))


def statistics_problems(document):
    """Checks medians, intervals, and that every rank has a value for each sample."""
    for i, result in enumerate(document["results"]):
        for name, samples in result["samples"].items():
            place = f"$.results[{i}].samples.{name}"
            values = samples["values"]
            if any(len(of_rank) != len(values) for of_rank in samples["by_rank"] or []):
                yield f"{place}: a rank has more or fewer samples than there are values"
            if any(value is None for value in values):
                continue
            ordered = sorted(values)
            low, high = rank_bounds(len(ordered))
            expected = {"median": statistics.median(ordered), "low": ordered[low - 1],
                        "high": ordered[high - 1]}
            for key, value in expected.items():
                if samples[key] is None or not math.isclose(samples[key], value, rel_tol=ROUNDING):
                    yield f"{place}: {key} is {samples[key]}, but the values say {value}"


def problems_of(text, kind="bench"):
    """Returns what is wrong with the text of a document, as a list of sentences."""
    try:
        document = parse(text)
    except ValueError as error:
        return [f"not JSON: {error}"]
    schema = json.loads(SCHEMAS[kind].read_text(encoding="utf-8"))
    problems = list(Validator(schema).problems(document))
    return problems or (list(statistics_problems(document)) if kind == "bench" else [])


def main():
    arguments = sys.argv[1:]
    kind = "bench"
    if arguments[:1] == ["--as"] and len(arguments) > 1 and arguments[1] in SCHEMAS:
        kind = arguments[1]
        arguments = arguments[2:]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__)
    bad = False
    for path in arguments:
        try:
            text = pathlib.Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            bad = True
            print(f"{path}: cannot be read: {error}")
            continue
        for document in text.splitlines() if kind == "history-line" else [text]:
            for problem in problems_of(document, kind):
                bad = True
                print(f"{path}: {problem}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
