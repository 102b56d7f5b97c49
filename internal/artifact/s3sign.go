package artifact

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/minio/minio-go/v7"
)

// Signed is a request that whoever has it may send until it expires, without credentials.
type Signed struct {
	Method, URL string
	// CA are the PEM certificates that the store is trusted by; empty is the system's.
	CA string
}

// Part is one of an upload in parts, as the store has called it.
type Part struct {
	Number int
	ETag   string
}

// ErrUploadGone says that an upload in parts is not there any more.
var ErrUploadGone = errors.New("the upload is not there any more")

// Signer is a [Store] that lets others send requests to it for a while.
type Signer interface {
	Store
	// SignGet and SignPut are of the object at a key, which is not looked at.
	SignGet(ctx context.Context, key string, expires time.Duration) (Signed, error)
	SignPut(ctx context.Context, key string, expires time.Duration) (Signed, error)
	// Begin begins an upload in parts; SignPart is of one of its parts, from 1. Finish makes them the object, Abort throws
	// them away.
	Begin(ctx context.Context, key string) (upload string, err error)
	SignPart(ctx context.Context, key, upload string, part int, expires time.Duration) (Signed, error)
	Finish(ctx context.Context, key, upload string, parts []Part) error
	Abort(ctx context.Context, key, upload string) error
}

func (s s3Store) sign(ctx context.Context, method, key string, expires time.Duration, query url.Values) (Signed, error) {
	u, err := s.client.Presign(ctx, method, s.block.Bucket, s.object(key), expires, query)
	if err != nil {
		return Signed{}, absent(err)
	}
	return Signed{Method: method, URL: u.String(), CA: s.ca}, nil
}

// SignGet implements [Signer].
func (s s3Store) SignGet(ctx context.Context, key string, expires time.Duration) (Signed, error) {
	return s.sign(ctx, http.MethodGet, key, expires, nil)
}

// SignPut implements [Signer].
func (s s3Store) SignPut(ctx context.Context, key string, expires time.Duration) (Signed, error) {
	if err := s.ready(ctx); err != nil {
		return Signed{}, err
	}
	return s.sign(ctx, http.MethodPut, key, expires, nil)
}

// Begin implements [Signer].
func (s s3Store) Begin(ctx context.Context, key string) (string, error) {
	if err := s.ready(ctx); err != nil {
		return "", err
	}
	return s.core().NewMultipartUpload(ctx, s.block.Bucket, s.object(key), minio.PutObjectOptions{})
}

// SignPart implements [Signer].
func (s s3Store) SignPart(ctx context.Context, key, upload string, part int, expires time.Duration) (Signed, error) {
	return s.sign(ctx, http.MethodPut, key, expires, url.Values{"uploadId": {upload}, "partNumber": {strconv.Itoa(part)}})
}

// Finish implements [Signer].
func (s s3Store) Finish(ctx context.Context, key, upload string, parts []Part) error {
	var done []minio.CompletePart
	for _, p := range parts {
		done = append(done, minio.CompletePart{PartNumber: p.Number, ETag: p.ETag})
	}
	slices.SortFunc(done, func(a, b minio.CompletePart) int { return a.PartNumber - b.PartNumber })
	_, err := s.core().CompleteMultipartUpload(ctx, s.block.Bucket, s.object(key), upload, done, minio.PutObjectOptions{})
	return uploadGone(err)
}

// Abort implements [Signer].
func (s s3Store) Abort(ctx context.Context, key, upload string) error {
	err := uploadGone(s.core().AbortMultipartUpload(ctx, s.block.Bucket, s.object(key), upload))
	if errors.Is(err, ErrUploadGone) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s s3Store) core() minio.Core { return minio.Core{Client: s.client} }

func uploadGone(err error) error {
	if minio.ToErrorResponse(err).Code == "NoSuchUpload" {
		return errors.Join(ErrUploadGone, err)
	}
	return absent(err)
}
