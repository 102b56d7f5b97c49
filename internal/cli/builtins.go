package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/hook"
	"github.com/sluice-ml/sluice/internal/hook/cache"
	"github.com/sluice-ml/sluice/internal/hook/cache/sqlcache"
	"github.com/sluice-ml/sluice/internal/hook/lineage"
	"github.com/sluice-ml/sluice/internal/kfp/fingerprint"
	"github.com/sluice-ml/sluice/internal/metadata"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/store/filelock"
	"github.com/sluice-ml/sluice/internal/submission"
)

// builtinHooks are the hooks that every local run has: the cache, which only tasks take part in whose author asked for
// it, and the record of what was made from what. A document that names the same plugin takes the place of ours.
func builtinHooks(registered []hook.Hook) []hook.Hook {
	var out []hook.Hook
	for _, name := range []string{"cache", "lineage"} {
		taken := false
		for _, h := range registered {
			taken = taken || h.Spec.Builtin != nil && h.Spec.Builtin.Name == name
		}
		if taken {
			continue
		}
		out = append(out, builtinHook(name))
	}
	return out
}

// builtinHook is a hook that nobody registered.
func builtinHook(name string) hook.Hook {
	h := hook.Hook{Origin: "sluice"}
	h.APIVersion, h.Kind = v1alpha1.APIVersion, v1alpha1.KindTaskHook
	h.Metadata.Name = "sluice-" + name
	h.Spec.Builtin = &v1alpha1.BuiltinHook{Name: name}
	h.Spec.FailurePolicy = v1alpha1.IgnoreFailure
	h.Spec.Order = 1000
	return h
}

// metadataStore opens the record of what was made from what.
func (a *app) metadataStore(ctx context.Context) (*metadata.Store, error) {
	st, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	db := st.DB()
	if err := db.Migrate(ctx, metadata.MigrationTable, metadata.Migrations()); err != nil {
		return nil, err
	}
	return metadata.NewStore(db.Write, db.Read), nil
}

// cacheEntries opens the cache.
func (a *app) cacheEntries(ctx context.Context) (*sqlcache.Entries, error) {
	st, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	db := st.DB()
	if err := db.Migrate(ctx, sqlcache.MigrationTable, sqlcache.Migrations()); err != nil {
		return nil, err
	}
	return sqlcache.New(db.Write, db.Read), nil
}

// builtins makes the plugins that are linked in. wake is how the cache has a waiting review asked again.
func (a *app) builtins(ctx context.Context, m *submission.Manifest, wake func(string)) (map[string]hook.Builtin, error) {
	entries, err := a.cacheEntries(ctx)
	if err != nil {
		return nil, err
	}
	records, err := a.metadataStore(ctx)
	if err != nil {
		return nil, err
	}
	stores := a.artifactOptions(m)
	c := cache.New(cache.Config{
		Entries: entries, Flights: entries, Fingerprint: kfpFingerprint, Wake: wake,
		Runs: func(uid string) bool {
			_, owned := filelock.Holder(a.ownerFile(uid))
			return owned
		},
		Exists: func(ctx context.Context, _ string, art v1alpha1.Artifact) (bool, error) {
			return artifactExists(ctx, art, stores)
		},
	})
	l := lineage.New(lineage.Store{Metadata: records})
	return map[string]hook.Builtin{"cache": c.FromSettings, "lineage": l.FromSettings}, nil
}

// kfpFingerprint is KFP's cache key of a task. An input artifact counts by its name in the store, which is unique to the
// execution that made it: a reused task hands on the artifacts of the one that it stands for.
func kfpFingerprint(r *v1alpha1.TaskReviewRequest) (string, error) {
	t := fingerprint.Task{
		Template: r.Task.TemplateSpec, Call: r.Task.Call, Parameters: r.Task.Inputs.Parameters, Defaulted: r.Task.Inputs.Defaulted,
		Artifacts: map[string][]string{},
	}
	for name, list := range r.Task.Inputs.Artifacts {
		for _, art := range list {
			id := art.URI
			if id == "" {
				id = string(art.Store)
			}
			if art.SubPath != "" {
				id += "#" + art.SubPath
			}
			t.Artifacts[name] = append(t.Artifacts[name], id)
		}
	}
	return fingerprint.Of(t)
}

// artifactExists says whether an artifact's bytes are still where they were.
func artifactExists(ctx context.Context, art v1alpha1.Artifact, opts artifact.Options) (bool, error) {
	a, err := artifactFrom(art)
	if err != nil {
		return false, err
	}
	if a.URI == "" && a.Store == nil {
		return true, nil // a description only
	}
	s, err := artifact.OpenArtifact(a, opts)
	if errors.Is(err, artifact.ErrUnknownKind) {
		return true, nil // nothing here could look
	}
	if err != nil {
		return false, err
	}
	if _, err := s.Stat(ctx, ""); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("look for artifact %s: %w", a.URI, err)
	}
	return true, nil
}

// artifactFrom is an artifact of the hook protocol as programs have it: their JSON is the same.
func artifactFrom(art v1alpha1.Artifact) (program.Artifact, error) {
	var out program.Artifact
	data, err := json.Marshal(art)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	return out, err
}
