package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// S3's bounds of an upload in parts: how many, and the smallest size of one, in bytes. What is larger than maxPut is sent in
// parts; singles are so small that a task can send them again.
const (
	maxParts = 10_000
	minPart  = 8 << 20
	maxPut   = 8 << 20
)

// sign answers a question about one object.
func (s *server) sign(w http.ResponseWriter, r *http.Request, a Attempt) error {
	data, err := body(w, r, spec.MaxAsk)
	if err != nil {
		return err
	}
	var ask spec.Ask
	if err := json.Unmarshal(data, &ask); err != nil {
		return refuse(http.StatusBadRequest, "the body is no question in JSON: %v", err)
	}
	store, err := a.open(ask)
	if err != nil {
		return err
	}
	said, err := s.perform(r.Context(), store, ask)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, said)
	return nil
}

func (s *server) perform(ctx context.Context, store artifact.Store, ask spec.Ask) (spec.Answer, error) {
	switch ask.Op {
	case spec.OpStat:
		info, err := store.Stat(ctx, ask.Key)
		return spec.Answer{Info: &spec.Object{Size: info.Size, Tree: info.Tree}}, err
	case spec.OpList:
		return list(ctx, store, ask.Key)
	case spec.OpDelete:
		return spec.Answer{}, store.Delete(ctx, ask.Key)
	case spec.OpGet:
		return s.get(ctx, store, ask)
	case spec.OpPut:
		return s.put(ctx, store, ask)
	}
	signer, can := store.(artifact.Signer)
	if !can || s.cfg.Carry {
		return spec.Answer{}, refuse(http.StatusBadRequest, "this artifact's store takes no parts: use %s", spec.OpPut)
	}
	return s.parts(ctx, signer, ask)
}

func list(ctx context.Context, store artifact.Store, key string) (spec.Answer, error) {
	found, err := store.List(ctx, key)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return spec.Answer{}, nil // as stores without folders say it
		}
		return spec.Answer{}, err
	}
	said := spec.Answer{Items: make([]spec.Object, len(found))}
	for i, o := range found {
		said.Items[i] = spec.Object{Key: o.Key, Size: o.Size, Tree: o.Tree}
	}
	return said, nil
}

func (s *server) get(ctx context.Context, store artifact.Store, ask spec.Ask) (spec.Answer, error) {
	signer, can := store.(artifact.Signer)
	if !can || s.cfg.Carry {
		return carried(http.MethodGet, ask), nil
	}
	// A signed address says nothing but that there is no object: whether there are others below it is asked here.
	info, err := store.Stat(ctx, ask.Key)
	if err != nil {
		return spec.Answer{}, err
	}
	if info.Tree {
		return spec.Answer{}, artifact.ErrTree
	}
	signed, err := signer.SignGet(ctx, ask.Key, s.cfg.Expires)
	return direct(signed), err
}

func (s *server) put(ctx context.Context, store artifact.Store, ask spec.Ask) (spec.Answer, error) {
	signer, can := store.(artifact.Signer)
	switch {
	case !can || s.cfg.Carry:
		return carried(http.MethodPut, ask), nil
	case ask.Size >= 0 && ask.Size <= maxPut:
		signed, err := signer.SignPut(ctx, ask.Key, s.cfg.Expires)
		return direct(signed), err
	}
	upload, err := signer.Begin(ctx, ask.Key)
	said := spec.Answer{Upload: upload}
	if ask.Size > 0 {
		const mib = 1 << 20
		said.PartSize = max(minPart, (ask.Size/(maxParts-1)/mib+1)*mib)
	}
	return said, err
}

func (s *server) parts(ctx context.Context, signer artifact.Signer, ask spec.Ask) (spec.Answer, error) {
	if ask.Upload == "" {
		return spec.Answer{}, refuse(http.StatusBadRequest, "%s needs an upload", ask.Op)
	}
	switch ask.Op {
	case spec.OpPart:
		if ask.Part < 1 || ask.Part > maxParts {
			return spec.Answer{}, refuse(http.StatusBadRequest, "part %d: parts are numbered from 1 to %d", ask.Part, maxParts)
		}
		signed, err := signer.SignPart(ctx, ask.Key, ask.Upload, ask.Part, s.cfg.Expires)
		return direct(signed), err
	case spec.OpFinish:
		parts := make([]artifact.Part, len(ask.Parts))
		for i, p := range ask.Parts {
			parts[i] = artifact.Part{Number: p.Number, ETag: p.ETag}
		}
		return spec.Answer{}, signer.Finish(ctx, ask.Key, ask.Upload, parts)
	case spec.OpAbort:
		return spec.Answer{}, signer.Abort(ctx, ask.Key, ask.Upload)
	}
	return spec.Answer{}, refuse(http.StatusBadRequest, "there is no operation %q", ask.Op)
}

func direct(signed artifact.Signed) spec.Answer {
	return spec.Answer{Request: &spec.Request{Method: signed.Method, URL: signed.URL, CA: signed.CA}}
}

// carried sends the bytes through the endpoint itself.
func carried(method string, ask spec.Ask) spec.Answer {
	query := url.Values{"direction": {string(ask.Direction)}, "name": {ask.Name}}
	for name, value := range map[string]string{"key": ask.Key, "uri": ask.URI} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if ask.Index != 0 {
		query.Set("index", strconv.Itoa(ask.Index))
	}
	return spec.Answer{Request: &spec.Request{Method: method, URL: spec.DataPath + "?" + query.Encode()}}
}
