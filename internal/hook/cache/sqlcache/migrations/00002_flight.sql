-- +goose Up
-- Work that is under way; since is in milliseconds since 1970.
CREATE TABLE cache_flight (
    scope        TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    uid          TEXT    NOT NULL,
    task         TEXT    NOT NULL,
    workflow_uid TEXT    NOT NULL,
    since        INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE cache_flight;
