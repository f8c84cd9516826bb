"""Which settings of Hadoop's connector for S3 become which options of a catalog."""

from __future__ import annotations

import pytest

from penstock.spark.hadoop_options import options_of


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        (
            {"fs.s3a.access.key": "key", "fs.s3a.secret.key": "secret", "fs.s3a.session.token": "token"},
            {"s3.access-key": "key", "s3.secret-key": "secret", "s3.session.token": "token"},
        ),
        (
            {"fs.s3a.endpoint": "http://127.0.0.1:9000", "fs.s3a.path.style.access": "true"},
            {"s3.endpoint": "http://127.0.0.1:9000", "s3.path.style.access": "true"},
        ),
        (
            {"fs.s3a.endpoint": "store:9000", "fs.s3a.connection.ssl.enabled": "false"},
            {"s3.endpoint": "http://store:9000"},
        ),
        ({"fs.s3a.endpoint": "store"}, {"s3.endpoint": "https://store"}),
        ({"fs.s3a.endpoint": "s3.amazonaws.com", "fs.s3a.endpoint.region": "eu-west-1"}, {"s3.region": "eu-west-1"}),
        (
            {"fs.s3a.access.key": "of all", "fs.s3a.bucket.lake.access.key": "of lake"},
            {"s3.access-key": "of lake"},
        ),
        ({"fs.s3a.bucket.other.access.key": "of other"}, {}),
    ],
)
def test_settings_become_options(settings: dict[str, str], options: dict[str, str]) -> None:
    assert options_of("lake", settings.get) == options
