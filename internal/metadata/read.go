package metadata

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ArtifactsByID gives artifacts in the order of their ids; ids that are not there are left out.
func (s *Store) ArtifactsByID(ctx context.Context, ids ...int64) ([]Artifact, error) {
	return s.artifacts(ctx, "a.id IN ("+marks(len(ids))+")", anys(ids)...)
}

// ArtifactsByURI gives the artifacts that lie at a URI, in the order of their ids.
func (s *Store) ArtifactsByURI(ctx context.Context, uri string) ([]Artifact, error) {
	return s.artifacts(ctx, "a.uri = ? AND a.uri <> ''", uri)
}

// ArtifactsByContext gives the artifacts of a context, in the order of their ids.
func (s *Store) ArtifactsByContext(ctx context.Context, contextID int64) ([]Artifact, error) {
	return s.artifacts(ctx, "a.id IN (SELECT artifact_id FROM md_attribution WHERE context_id = ?)", contextID)
}

// FindArtifacts finds what a person may mean by a text: an id ("17"), a URI or the end of one, a digest or the beginning of
// one (at least 8 characters behind "sha256:"), or a name. Newest first, at most limit.
func (s *Store) FindArtifacts(ctx context.Context, text string, limit int) ([]Artifact, error) {
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		if found, err := s.ArtifactsByID(ctx, id); err != nil || len(found) > 0 {
			return found, err
		}
	}
	digest := text
	if !strings.HasPrefix(digest, "sha256:") {
		digest = "sha256:" + digest
	}
	where := `(a.uri = ? OR a.name = ? OR a.uri LIKE ? ESCAPE '\'`
	args := []any{text, text, "%/" + escapeLike(strings.TrimPrefix(text, "/"))}
	if len(digest) >= len("sha256:")+8 {
		where += ` OR (a.digest >= ? AND a.digest < ?)`
		args = append(args, digest, digest+"\x7f")
	}
	where += ` OR EXISTS (SELECT 1 FROM md_artifact_property p WHERE p.owner_id = a.id AND p.name = 'display_name' AND p.string_value = ?)) ORDER BY a.id DESC LIMIT ?`
	args = append(args, text, limit)
	return s.artifacts(ctx, where, args...)
}

func escapeLike(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

// artifacts reads the artifacts that a condition over a (md_artifact) holds for.
func (s *Store) artifacts(ctx context.Context, where string, args ...any) ([]Artifact, error) {
	if !strings.Contains(where, "ORDER BY") {
		where += " ORDER BY a.id"
	}
	rows, err := s.read.QueryContext(ctx, `SELECT a.id, t.name, COALESCE(a.name, ''), a.uri, a.digest, a.state, a.created, a.updated
		FROM md_artifact a JOIN md_type t ON t.id = a.type_id WHERE `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("metadata: read artifacts: %w", err)
	}
	defer rows.Close()
	var list []Artifact
	for rows.Next() {
		var (
			a                Artifact
			created, updated int64
		)
		if err := rows.Scan(&a.ID, &a.Type, &a.Name, &a.URI, &a.Digest, &a.State, &created, &updated); err != nil {
			return nil, fmt.Errorf("metadata: read artifacts: %w", err)
		}
		a.Created, a.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
		list = append(list, a)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("metadata: read artifacts: %w", err)
	}
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	properties, custom, err := s.properties(ctx, "md_artifact_property", ids)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Properties, list[i].Custom = properties[list[i].ID], custom[list[i].ID]
	}
	return list, nil
}

// ExecutionsByID gives executions in the order of their ids; ids that are not there are left out.
func (s *Store) ExecutionsByID(ctx context.Context, ids ...int64) ([]Execution, error) {
	return s.executions(ctx, "e.id IN ("+marks(len(ids))+")", anys(ids)...)
}

// ExecutionsByContext gives the executions of a context, in the order of their ids.
func (s *Store) ExecutionsByContext(ctx context.Context, contextID int64) ([]Execution, error) {
	return s.executions(ctx, "e.id IN (SELECT execution_id FROM md_association WHERE context_id = ?)", contextID)
}

// ExecutionByTypeAndName gives one execution, or ErrNotFound.
func (s *Store) ExecutionByTypeAndName(ctx context.Context, typ, name string) (Execution, error) {
	list, err := s.executions(ctx, "t.kind = ? AND t.name = ? AND e.name = ?", int(executionKind), typ, name)
	if err != nil {
		return Execution{}, err
	}
	if len(list) == 0 {
		return Execution{}, fmt.Errorf("metadata: execution %s: %w", name, ErrNotFound)
	}
	return list[0], nil
}

func (s *Store) executions(ctx context.Context, where string, args ...any) ([]Execution, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT e.id, t.name, COALESCE(e.name, ''), e.state, e.created, e.updated
		FROM md_execution e JOIN md_type t ON t.id = e.type_id WHERE `+where+` ORDER BY e.id`, args...)
	if err != nil {
		return nil, fmt.Errorf("metadata: read executions: %w", err)
	}
	defer rows.Close()
	var list []Execution
	for rows.Next() {
		var (
			e                Execution
			created, updated int64
		)
		if err := rows.Scan(&e.ID, &e.Type, &e.Name, &e.State, &created, &updated); err != nil {
			return nil, fmt.Errorf("metadata: read executions: %w", err)
		}
		e.Created, e.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
		list = append(list, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("metadata: read executions: %w", err)
	}
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	properties, custom, err := s.properties(ctx, "md_execution_property", ids)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Properties, list[i].Custom = properties[list[i].ID], custom[list[i].ID]
	}
	return list, nil
}

// ContextByTypeAndName gives one context, or ErrNotFound.
func (s *Store) ContextByTypeAndName(ctx context.Context, typ, name string) (Context, error) {
	c := Context{Type: typ, Name: name}
	var created, updated int64
	err := s.read.QueryRowContext(ctx, `SELECT c.id, c.created, c.updated FROM md_context c JOIN md_type t ON t.id = c.type_id
		WHERE t.kind = ? AND t.name = ? AND c.name = ?`, int(contextKind), typ, name).Scan(&c.ID, &created, &updated)
	if errors.Is(err, sql.ErrNoRows) {
		return Context{}, fmt.Errorf("metadata: context %s: %w", name, ErrNotFound)
	}
	if err != nil {
		return Context{}, fmt.Errorf("metadata: read context: %w", err)
	}
	c.Created, c.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	properties, custom, err := s.properties(ctx, "md_context_property", []int64{c.ID})
	if err != nil {
		return Context{}, err
	}
	c.Properties, c.Custom = properties[c.ID], custom[c.ID]
	return c, nil
}

// EventsByArtifactIDs gives the events of artifacts, EventsByExecutionIDs those of executions, oldest first.
func (s *Store) EventsByArtifactIDs(ctx context.Context, ids ...int64) ([]Event, error) {
	return s.events(ctx, "artifact_id", ids)
}

// EventsByExecutionIDs gives the events of executions, oldest first.
func (s *Store) EventsByExecutionIDs(ctx context.Context, ids ...int64) ([]Event, error) {
	return s.events(ctx, "execution_id", ids)
}

func (s *Store) events(ctx context.Context, column string, ids []int64) ([]Event, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := s.read.QueryContext(ctx, `SELECT artifact_id, execution_id, type, path, time FROM md_event WHERE `+column+
		` IN (`+marks(len(ids))+`) ORDER BY id`, anys(ids)...)
	if err != nil {
		return nil, fmt.Errorf("metadata: read events: %w", err)
	}
	defer rows.Close()
	var list []Event
	for rows.Next() {
		var (
			e    Event
			path string
			at   int64
		)
		if err := rows.Scan(&e.ArtifactID, &e.ExecutionID, &e.Type, &path, &at); err != nil {
			return nil, fmt.Errorf("metadata: read events: %w", err)
		}
		if err := json.Unmarshal([]byte(path), &e.Path); err != nil {
			return nil, fmt.Errorf("metadata: path of an event of execution %d: %w", e.ExecutionID, err)
		}
		e.Time = time.UnixMilli(at).UTC()
		list = append(list, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("metadata: read events: %w", err)
	}
	return list, nil
}

// properties reads the properties of several owners, those of the type and the custom ones apart.
func (s *Store) properties(ctx context.Context, table string, ids []int64) (typed, custom map[int64]Properties, err error) {
	typed, custom = map[int64]Properties{}, map[int64]Properties{}
	if len(ids) == 0 {
		return typed, custom, nil
	}
	rows, err := s.read.QueryContext(ctx, `SELECT owner_id, name, custom, int_value, double_value, string_value, bool_value, json_value
		FROM `+table+` WHERE owner_id IN (`+marks(len(ids))+`)`, anys(ids)...)
	if err != nil {
		return nil, nil, fmt.Errorf("metadata: read properties: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			owner      int64
			name       string
			isCustom   bool
			integer    sql.NullInt64
			double     sql.NullFloat64
			text       sql.NullString
			boolean    sql.NullBool
			structured sql.NullString
			value      any
		)
		if err := rows.Scan(&owner, &name, &isCustom, &integer, &double, &text, &boolean, &structured); err != nil {
			return nil, nil, fmt.Errorf("metadata: read properties: %w", err)
		}
		switch {
		case integer.Valid:
			value = integer.Int64
		case double.Valid:
			value = double.Float64
		case text.Valid:
			value = text.String
		case boolean.Valid:
			value = boolean.Bool
		case structured.Valid:
			if err := json.Unmarshal([]byte(structured.String), &value); err != nil {
				return nil, nil, fmt.Errorf("metadata: property %s: %w", name, err)
			}
		}
		owners := typed
		if isCustom {
			owners = custom
		}
		if owners[owner] == nil {
			owners[owner] = Properties{}
		}
		owners[owner][name] = value
	}
	if err := rows.Err(); err != nil {
		return nil, nil, fmt.Errorf("metadata: read properties: %w", err)
	}
	return typed, custom, nil
}

// marks is n question marks for an IN list.
func marks(n int) string {
	if n == 0 {
		return "NULL"
	}
	return strings.TrimSuffix(strings.Repeat("?,", n), ",")
}

func anys(ids []int64) []any {
	out := make([]any, len(ids))
	for i, id := range ids {
		out[i] = id
	}
	return out
}
