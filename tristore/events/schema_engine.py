"""The JSON Schema engine, told to open no socket and no file and to match in linear time."""

from typing import Any

from jsonschema_rs import Draft202012Validator, RegexOptions

Schema = dict[str, Any]

# A pattern is matched in time linear in the value, but the factor is the size of the pattern:
# without a limit `a{100000}` took 40 s for one value. `patterns` refuses far smaller ones.
_PATTERN_BYTES = 1024 * 1024


def compile_schema(schema: Schema | bool) -> Draft202012Validator:
    return Draft202012Validator(
        schema,
        validate_formats=True,
        offline=True,
        pattern_options=RegexOptions(size_limit=_PATTERN_BYTES),
    )
