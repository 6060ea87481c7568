-- What journals refer to is dropped when they are, without looking at all of it.
CREATE INDEX blob_uses_by_age ON blob_uses (used_at);
CREATE INDEX message_versions_by_age ON message_versions (replaced_at);
