"""HTTP Message Signatures (RFC 9421): the text that is signed, and the header fields that carry a signature."""

from base64 import b64encode
from collections.abc import Mapping, Sequence

Component = tuple[str, str]
Parameters = Mapping[str, int | str]


def signature_params(components: Sequence[Component], parameters: Parameters) -> str:
    """Return the covered components and the parameters, in the order given (RFC 9421, 2.3).

    >>> signature_params([('"@authority"', "example.com")], {"created": 1618884473, "keyid": "test-key"})
    '("@authority");created=1618884473;keyid="test-key"'

    Args:
        components: Each component's identifier as it is serialized, with its parameters, and its value.
        parameters: Integers, and strings of printable ASCII without `"` and backslash.
    """
    covered = " ".join(identifier for identifier, _ in components)
    values = {name: value if isinstance(value, int) else f'"{value}"' for name, value in parameters.items()}
    listed = "".join(f";{name}={value}" for name, value in values.items())
    return f"({covered}){listed}"


def signature_base(components: Sequence[Component], params: str) -> bytes:
    r"""Return what is signed: one line for each component, and the parameters (RFC 9421, 2.5).

    >>> signature_base([('"@authority"', "example.com")], '("@authority");created=1618884473')
    b'"@authority": example.com\n"@signature-params": ("@authority");created=1618884473'

    Args:
        components: As for `signature_params`.
        params: The result of `signature_params`.
    """
    lines = [f"{identifier}: {value}" for identifier, value in components]
    return "\n".join([*lines, f'"@signature-params": {params}']).encode("ascii")


def signature_fields(label: str, params: str, signature: bytes) -> dict[str, str]:
    """Return Signature-Input and Signature, with one member each (RFC 9421, 4.1 and 4.2).

    >>> signature_fields("sig", '("@method")', b"abc")
    {'Signature-Input': 'sig=("@method")', 'Signature': 'sig=:YWJj:'}
    """
    return {"Signature-Input": f"{label}={params}", "Signature": f"{label}=:{b64encode(signature).decode()}:"}
