-- +goose Up
-- Names and meanings are ML Metadata's: artifacts, executions and contexts with types and properties; events join
-- artifacts with executions, associations executions with contexts, attributions artifacts with contexts.
-- Times are milliseconds since 1970.
CREATE TABLE md_type (
  id        INTEGER PRIMARY KEY,
  kind      INTEGER NOT NULL, -- 0 execution, 1 artifact, 2 context
  name      TEXT    NOT NULL,
  UNIQUE (kind, name)
);

CREATE TABLE md_artifact (
  id        INTEGER PRIMARY KEY,
  type_id   INTEGER NOT NULL REFERENCES md_type (id),
  name      TEXT,
  uri       TEXT    NOT NULL DEFAULT '',
  digest    TEXT    NOT NULL DEFAULT '',
  state     TEXT    NOT NULL DEFAULT 'LIVE',
  created   INTEGER NOT NULL,
  updated   INTEGER NOT NULL,
  UNIQUE (type_id, name)
);
CREATE INDEX md_artifact_uri ON md_artifact (uri) WHERE uri <> '';
CREATE INDEX md_artifact_digest ON md_artifact (digest) WHERE digest <> '';

CREATE TABLE md_execution (
  id        INTEGER PRIMARY KEY,
  type_id   INTEGER NOT NULL REFERENCES md_type (id),
  name      TEXT,
  state     TEXT    NOT NULL DEFAULT 'UNKNOWN',
  created   INTEGER NOT NULL,
  updated   INTEGER NOT NULL,
  UNIQUE (type_id, name)
);

CREATE TABLE md_context (
  id        INTEGER PRIMARY KEY,
  type_id   INTEGER NOT NULL REFERENCES md_type (id),
  name      TEXT    NOT NULL,
  created   INTEGER NOT NULL,
  updated   INTEGER NOT NULL,
  UNIQUE (type_id, name)
);

CREATE TABLE md_parent_context (
  context_id        INTEGER NOT NULL REFERENCES md_context (id),
  parent_context_id INTEGER NOT NULL REFERENCES md_context (id),
  PRIMARY KEY (context_id, parent_context_id)
) WITHOUT ROWID;

-- Exactly one of the value columns is set; json_value holds lists and structures.
CREATE TABLE md_artifact_property (
  owner_id INTEGER NOT NULL REFERENCES md_artifact (id) ON DELETE CASCADE,
  name TEXT NOT NULL, custom INTEGER NOT NULL,
  int_value INTEGER, double_value REAL, string_value TEXT, bool_value INTEGER, json_value TEXT,
  PRIMARY KEY (owner_id, name, custom)
) WITHOUT ROWID;

CREATE TABLE md_execution_property (
  owner_id INTEGER NOT NULL REFERENCES md_execution (id) ON DELETE CASCADE,
  name TEXT NOT NULL, custom INTEGER NOT NULL,
  int_value INTEGER, double_value REAL, string_value TEXT, bool_value INTEGER, json_value TEXT,
  PRIMARY KEY (owner_id, name, custom)
) WITHOUT ROWID;

CREATE TABLE md_context_property (
  owner_id INTEGER NOT NULL REFERENCES md_context (id) ON DELETE CASCADE,
  name TEXT NOT NULL, custom INTEGER NOT NULL,
  int_value INTEGER, double_value REAL, string_value TEXT, bool_value INTEGER, json_value TEXT,
  PRIMARY KEY (owner_id, name, custom)
) WITHOUT ROWID;

-- path is a JSON list of keys (texts) and indices (numbers): ["model"], ["models", 2].
CREATE TABLE md_event (
  id           INTEGER PRIMARY KEY,
  artifact_id  INTEGER NOT NULL REFERENCES md_artifact (id),
  execution_id INTEGER NOT NULL REFERENCES md_execution (id),
  type         TEXT    NOT NULL,
  path         TEXT    NOT NULL DEFAULT '[]',
  time         INTEGER NOT NULL,
  UNIQUE (artifact_id, execution_id, type, path)
);
CREATE INDEX md_event_execution ON md_event (execution_id);

CREATE TABLE md_association (
  context_id   INTEGER NOT NULL REFERENCES md_context (id),
  execution_id INTEGER NOT NULL REFERENCES md_execution (id),
  PRIMARY KEY (context_id, execution_id)
) WITHOUT ROWID;
CREATE INDEX md_association_execution ON md_association (execution_id);

CREATE TABLE md_attribution (
  context_id   INTEGER NOT NULL REFERENCES md_context (id),
  artifact_id  INTEGER NOT NULL REFERENCES md_artifact (id),
  PRIMARY KEY (context_id, artifact_id)
) WITHOUT ROWID;
CREATE INDEX md_attribution_artifact ON md_attribution (artifact_id);

-- +goose Down
DROP TABLE md_attribution;
DROP TABLE md_association;
DROP TABLE md_event;
DROP TABLE md_context_property;
DROP TABLE md_execution_property;
DROP TABLE md_artifact_property;
DROP TABLE md_parent_context;
DROP TABLE md_context;
DROP TABLE md_execution;
DROP TABLE md_artifact;
DROP TABLE md_type;
