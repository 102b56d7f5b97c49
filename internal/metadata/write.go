package metadata

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// writer writes one record in one transaction.
type writer struct {
	ctx      context.Context //nolint:containedctx // it lives as long as one call
	tx       *sql.Tx
	store    *Store
	now      int64
	types    map[typeKey]int64
	contexts map[typeKey]int64
}

func (w *writer) put(record Record) (Recorded, error) {
	var out Recorded
	id, err := w.execution(record.Execution)
	if err != nil {
		return out, err
	}
	out.ExecutionID = id
	for _, a := range record.Artifacts {
		artifact, err := w.artifact(id, a)
		if err != nil {
			return out, fmt.Errorf("artifact %v: %w", a.Path, err)
		}
		out.ArtifactIDs = append(out.ArtifactIDs, artifact)
	}
	parent := int64(0)
	for _, c := range record.Contexts {
		contextID, err := w.context(c, parent)
		if err != nil {
			return out, fmt.Errorf("context %s: %w", c.Name, err)
		}
		if err := w.exec(`INSERT INTO md_association (context_id, execution_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, contextID, id); err != nil {
			return out, err
		}
		for _, artifact := range out.ArtifactIDs {
			if err := w.exec(`INSERT INTO md_attribution (context_id, artifact_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, contextID, artifact); err != nil {
				return out, err
			}
		}
		out.ContextIDs = append(out.ContextIDs, contextID)
		parent = contextID
	}
	return out, nil
}

// execution finds or makes the execution and sets its state and properties.
func (w *writer) execution(e Execution) (int64, error) {
	id := e.ID
	if id == 0 {
		typeID, err := w.typeID(executionKind, e.Type)
		if err != nil {
			return 0, err
		}
		err = w.tx.QueryRowContext(w.ctx, `INSERT INTO md_execution (type_id, name, state, created, updated) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (type_id, name) DO UPDATE SET state = excluded.state, updated = excluded.updated RETURNING id`,
			typeID, nullable(e.Name), string(e.State), w.now, w.now).Scan(&id)
		if err != nil {
			return 0, err
		}
	} else {
		var found int64
		err := w.tx.QueryRowContext(w.ctx, `UPDATE md_execution SET state = ?, updated = ? WHERE id = ? RETURNING id`,
			string(e.State), w.now, id).Scan(&found)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, fmt.Errorf("execution %d: %w", id, ErrNotFound)
		}
		if err != nil {
			return 0, err
		}
	}
	if err := w.properties("md_execution_property", id, e.Properties, false); err != nil {
		return 0, err
	}
	return id, w.properties("md_execution_property", id, e.Custom, true)
}

// artifact finds or makes an artifact and its event.
func (w *writer) artifact(execution int64, a ArtifactEvent) (int64, error) {
	path, err := json.Marshal(a.Path)
	if err != nil {
		return 0, err
	}
	if a.Path == nil {
		path = []byte("[]")
	}
	var id int64
	err = sql.ErrNoRows
	if a.Artifact.ID != 0 {
		id, err = a.Artifact.ID, nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		// The same record again: the artifact that stands at this place already.
		err = w.tx.QueryRowContext(w.ctx, `SELECT artifact_id FROM md_event WHERE execution_id = ? AND type = ? AND path = ?`,
			execution, string(a.Type), string(path)).Scan(&id)
	}
	if errors.Is(err, sql.ErrNoRows) && a.Adopt && a.Artifact.URI != "" {
		err = w.tx.QueryRowContext(w.ctx, `SELECT id FROM md_artifact WHERE uri = ? AND uri <> '' ORDER BY id DESC LIMIT 1`, a.Artifact.URI).Scan(&id)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		if id, err = w.newArtifact(a.Artifact); err != nil {
			return 0, err
		}
	case err != nil:
		return 0, err
	case !a.Adopt && a.Artifact.ID == 0:
		if err := w.exec(`UPDATE md_artifact SET uri = ?, digest = ?, state = ?, updated = ? WHERE id = ?`,
			a.Artifact.URI, a.Artifact.Digest, string(stateOf(a.Artifact)), w.now, id); err != nil {
			return 0, err
		}
		if err := w.properties("md_artifact_property", id, a.Artifact.Custom, true); err != nil {
			return 0, err
		}
	}
	return id, w.exec(`INSERT INTO md_event (artifact_id, execution_id, type, path, time) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		id, execution, string(a.Type), string(path), w.now)
}

func stateOf(a Artifact) ArtifactState {
	if a.State == "" {
		return Live
	}
	return a.State
}

func (w *writer) newArtifact(a Artifact) (int64, error) {
	name := a.Type
	if name == "" {
		name = GenericArtifact
	}
	typeID, err := w.typeID(artifactKind, name)
	if err != nil {
		return 0, err
	}
	var id int64
	err = w.tx.QueryRowContext(w.ctx, `INSERT INTO md_artifact (type_id, name, uri, digest, state, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		typeID, nullable(a.Name), a.URI, a.Digest, string(stateOf(a)), w.now, w.now).Scan(&id)
	if err != nil {
		return 0, err
	}
	if err := w.properties("md_artifact_property", id, a.Properties, false); err != nil {
		return 0, err
	}
	return id, w.properties("md_artifact_property", id, a.Custom, true)
}

// context finds or makes a context. One that is there keeps its properties.
func (w *writer) context(c Context, parent int64) (int64, error) {
	key := typeKey{contextKind, c.Type + "\x00" + c.Name}
	if id, ok := w.store.knownContext(key); ok {
		return id, nil
	}
	typeID, err := w.typeID(contextKind, c.Type)
	if err != nil {
		return 0, err
	}
	var id int64
	err = w.tx.QueryRowContext(w.ctx, `SELECT id FROM md_context WHERE type_id = ? AND name = ?`, typeID, c.Name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = w.tx.QueryRowContext(w.ctx, `INSERT INTO md_context (type_id, name, created, updated) VALUES (?, ?, ?, ?) RETURNING id`,
			typeID, c.Name, w.now, w.now).Scan(&id)
		if err == nil {
			err = errors.Join(w.properties("md_context_property", id, c.Properties, false), w.properties("md_context_property", id, c.Custom, true))
		}
	}
	if err != nil {
		return 0, err
	}
	if parent != 0 {
		if err := w.exec(`INSERT INTO md_parent_context (context_id, parent_context_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, id, parent); err != nil {
			return 0, err
		}
	}
	if w.contexts == nil {
		w.contexts = map[typeKey]int64{}
	}
	w.contexts[key] = id
	return id, nil
}

// typeID finds or makes a type.
func (w *writer) typeID(kind typeKind, name string) (int64, error) {
	key := typeKey{kind, name}
	if id, ok := w.store.known(key); ok {
		return id, nil
	}
	if id, ok := w.types[key]; ok {
		return id, nil
	}
	var id int64
	err := w.tx.QueryRowContext(w.ctx, `INSERT INTO md_type (kind, name) VALUES (?, ?)
		ON CONFLICT (kind, name) DO UPDATE SET name = excluded.name RETURNING id`, int(kind), name).Scan(&id)
	if err != nil {
		return 0, err
	}
	if w.types == nil {
		w.types = map[typeKey]int64{}
	}
	w.types[key] = id
	return id, nil
}

// properties sets properties by name; table is one of the constants above.
func (w *writer) properties(table string, owner int64, properties Properties, custom bool) error {
	for name, value := range properties {
		var integer, double, text, boolean, structured any
		switch v := value.(type) {
		case nil:
			continue
		case bool:
			boolean = v
		case int64:
			integer = v
		case int:
			integer = int64(v)
		case float64:
			double = v
		case string:
			text = v
		default:
			data, err := json.Marshal(v)
			if err != nil {
				return fmt.Errorf("property %s: %w", name, err)
			}
			structured = string(data)
		}
		query := `INSERT INTO ` + table + ` (owner_id, name, custom, int_value, double_value, string_value, bool_value, json_value)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (owner_id, name, custom) DO UPDATE SET int_value = excluded.int_value, double_value = excluded.double_value,
			string_value = excluded.string_value, bool_value = excluded.bool_value, json_value = excluded.json_value`
		if err := w.exec(query, owner, name, custom, integer, double, text, boolean, structured); err != nil {
			return fmt.Errorf("property %s: %w", name, err)
		}
	}
	return nil
}

func (w *writer) exec(query string, args ...any) error {
	_, err := w.tx.ExecContext(w.ctx, query, args...)
	return err
}

func nullable(text string) any {
	if text == "" {
		return nil
	}
	return text
}
