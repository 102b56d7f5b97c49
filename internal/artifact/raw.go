package artifact

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// rawStore is an artifact whose bytes stand in the manifest.
type rawStore struct{ data string }

func openRaw(body program.JSON) (Store, error) {
	var block struct {
		Data string `json:"data"`
	}
	if err := json.Unmarshal(body, &block); err != nil {
		return nil, err
	}
	return rawStore{data: block.Data}, nil
}

func (s rawStore) Stat(_ context.Context, key string) (Info, error) {
	if key != "" {
		return Info{}, fmt.Errorf("raw artifact %s: %w", key, fs.ErrNotExist)
	}
	return Info{Size: int64(len(s.data))}, nil
}

func (s rawStore) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if _, err := s.Stat(ctx, key); err != nil {
		return nil, err
	}
	return io.NopCloser(strings.NewReader(s.data)), nil
}

func (s rawStore) Put(context.Context, string, io.Reader, int64) error {
	return fmt.Errorf("a raw artifact %w", ErrReadOnly)
}

func (s rawStore) Delete(context.Context, string) error {
	return fmt.Errorf("a raw artifact %w", ErrReadOnly)
}

func (s rawStore) List(context.Context, string) ([]Info, error) { return nil, nil }
