"""Keys and region of a profile in the files that `aws configure` writes."""

import os
from configparser import ConfigParser
from configparser import Error as ConfigError
from pathlib import Path

from graphrag_index.errors import SettingsError

# Names of values in the files, and in the configuration of obstore.
_NAMES = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "region": "region",
}


def read_aws_profile() -> dict[str, str]:
    """Read the profile in AWS_PROFILE, or `default`, unless the environment has credentials.

    The region of the environment is left to obstore. Raises SettingsError if AWS_PROFILE names a
    profile that is in neither file, or if a file is damaged.
    """
    if {"AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"} & os.environ.keys():
        return {}
    name, is_there = os.environ.get("AWS_PROFILE", "default"), False
    found: dict[str, str] = {}
    for variable, file, prefix in (
        ("AWS_CONFIG_FILE", "config", "" if name == "default" else "profile "),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", ""),
    ):
        path = Path(os.environ.get(variable) or Path("~/.aws", file)).expanduser()
        parser = ConfigParser(interpolation=None)
        try:
            parser.read(path, encoding="utf-8")
        except (ConfigError, OSError, UnicodeError) as error:
            raise SettingsError(f"{path} cannot be read: {' '.join(str(error).split())}.") from None
        if parser.has_section(prefix + name):
            is_there = True
            found |= {
                _NAMES[key]: text for key, text in parser[prefix + name].items() if key in _NAMES
            }
    if "AWS_PROFILE" in os.environ and not is_there:
        raise SettingsError(f"The files in ~/.aws have no profile {name}, which AWS_PROFILE names.")
    if {"AWS_REGION", "AWS_DEFAULT_REGION"} & os.environ.keys():
        found.pop("region", None)
    return found
