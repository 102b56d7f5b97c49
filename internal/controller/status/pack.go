package status

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
)

// maxUnpacked bounds what compressed nodes may unfold to.
const maxUnpacked = 1 << 30

// Pack gives nodes in the form of status.compressedNodes: gzip, then base64, as Argo's tools read it.
func Pack(nodes []byte) (string, error) {
	var out bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &out)
	w, err := gzip.NewWriterLevel(encoder, gzip.BestSpeed)
	if err != nil {
		return "", fmt.Errorf("compress nodes: %w", err)
	}
	if _, err := w.Write(nodes); err != nil {
		return "", fmt.Errorf("compress nodes: %w", err)
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("compress nodes: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return "", fmt.Errorf("compress nodes: %w", err)
	}
	return out.String(), nil
}

// Unpack takes compressed nodes out of their form.
func Unpack(packed string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		return nil, fmt.Errorf("compressedNodes: %w", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("compressedNodes: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(r, maxUnpacked))
	if err != nil {
		return nil, fmt.Errorf("compressedNodes: %w", err)
	}
	return out, nil
}
