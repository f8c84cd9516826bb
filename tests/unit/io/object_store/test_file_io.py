"""The promises of ``FileIO``, on a server that speaks S3."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from penstock.testing.suites import FileIOSuite

if TYPE_CHECKING:
    from tests.s3_server import S3Bucket

    from penstock.io.file_io import FileIO


class TestS3FileIO(FileIOSuite):
    has_directories = False

    @pytest.fixture
    def file_io(self, s3_bucket: S3Bucket) -> FileIO:
        return s3_bucket.file_io

    @pytest.fixture
    def root(self, s3_bucket: S3Bucket) -> str:
        return f"{s3_bucket.root}/{uuid.uuid4()}"
