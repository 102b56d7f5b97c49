package artifact

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/sluice-ml/sluice/internal/program"
)

// partSize is how much of an object of unknown size is held in memory while it is sent.
const partSize = 32 << 20

// s3Store is an object, or a prefix, in a bucket.
type s3Store struct {
	block  s3Block
	client *minio.Client
	ca     string // PEM; empty is the system's
}

type s3Block struct {
	Endpoint        string     `json:"endpoint"`
	Bucket          string     `json:"bucket"`
	Region          string     `json:"region"`
	Insecure        bool       `json:"insecure"`
	Key             string     `json:"key"`
	AccessKey       *secretKey `json:"accessKeySecret"`
	SecretKey       *secretKey `json:"secretKeySecret"`
	SessionToken    *secretKey `json:"sessionTokenSecret"`
	RoleARN         string     `json:"roleARN"`
	CA              *secretKey `json:"caSecret"`
	AddressingStyle string     `json:"addressingStyle"`
	CreateBucket    *struct{}  `json:"createBucketIfNotPresent"`
}

func openS3(body program.JSON, opts Options) (Store, error) {
	var block s3Block
	if err := json.Unmarshal(body, &block); err != nil {
		return nil, err
	}
	if block.Bucket == "" {
		return nil, errors.New("bucket is missing: the manifest gives only a key, and no artifact repository is configured that says where")
	}
	if block.Endpoint == "" {
		block.Endpoint = "s3.amazonaws.com"
	}
	access, err := s3Credentials(block, opts)
	if err != nil {
		return nil, err
	}
	ca, err := block.CA.read(opts, "caSecret")
	if err != nil {
		return nil, err
	}
	transport, err := s3Transport(block, ca, opts)
	if err != nil {
		return nil, err
	}
	settings := &minio.Options{Creds: access, Secure: !block.Insecure, Region: block.Region, Transport: transport, BucketLookup: minio.BucketLookupAuto}
	switch block.AddressingStyle {
	case "path":
		settings.BucketLookup = minio.BucketLookupPath
	case "virtual-hosted":
		settings.BucketLookup = minio.BucketLookupDNS
	}
	client, err := minio.New(block.Endpoint, settings)
	if err != nil {
		return nil, err
	}
	return s3Store{block: block, client: client, ca: ca}, nil
}

// s3Credentials are those of the block's secrets; without them, where the options allow it, those of the surroundings: the
// AWS variables, a shared credentials file, or the machine's or pod's own role.
func s3Credentials(block s3Block, opts Options) (*credentials.Credentials, error) {
	access, err := block.AccessKey.read(opts, "accessKeySecret")
	if err != nil {
		return nil, err
	}
	secret, err := block.SecretKey.read(opts, "secretKeySecret")
	if err != nil {
		return nil, err
	}
	token, err := block.SessionToken.read(opts, "sessionTokenSecret")
	if err != nil {
		return nil, err
	}
	base := credentials.NewStaticV4(access, secret, token)
	if access == "" && secret == "" {
		if opts.OwnCredentials != nil && !opts.OwnCredentials(block.Bucket) {
			return nil, secretError{fmt.Errorf("bucket %s: name an accessKeySecret and a secretKeySecret; credentials of this program's own are for other buckets", block.Bucket)}
		}
		base = credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.EnvMinio{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: opts.Client},
		})
	}
	if block.RoleARN == "" {
		return base, nil
	}
	value, err := base.GetWithContext(nil)
	if err != nil {
		return nil, fmt.Errorf("roleARN: %w", err)
	}
	sts := "https://sts.amazonaws.com"
	if block.Region != "" {
		sts = "https://sts." + block.Region + ".amazonaws.com"
	}
	return credentials.NewSTSAssumeRole(sts, credentials.STSAssumeRoleOptions{
		AccessKey: value.AccessKeyID, SecretKey: value.SecretAccessKey, SessionToken: value.SessionToken, RoleARN: block.RoleARN,
		RoleSessionName: "sluice", Location: block.Region,
	})
}

func s3Transport(block s3Block, ca string, opts Options) (http.RoundTripper, error) {
	if opts.Client != nil && opts.Client.Transport != nil {
		return opts.Client.Transport, nil
	}
	transport, err := minio.DefaultTransport(!block.Insecure)
	if err != nil {
		return nil, err
	}
	if ca == "" {
		return transport, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		return nil, errors.New("caSecret holds no certificate")
	}
	if transport.TLSClientConfig == nil {
		transport.TLSClientConfig = &tls.Config{}
	}
	transport.TLSClientConfig.RootCAs = pool
	return transport, nil
}

// object is the key of a key.
func (s s3Store) object(key string) string {
	if key == "" {
		return s.block.Key
	}
	return path.Join(s.block.Key, key)
}

// absent turns S3's words for what is not there into fs.ErrNotExist.
func absent(err error) error {
	switch minio.ToErrorResponse(err).Code {
	case "NoSuchKey", "NoSuchBucket", "NotFound":
		return fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	}
	return err
}

func (s s3Store) Stat(ctx context.Context, key string) (Info, error) {
	object := s.object(key)
	info, err := s.client.StatObject(ctx, s.block.Bucket, object, minio.StatObjectOptions{})
	if err == nil && !strings.HasSuffix(object, "/") {
		return Info{Size: info.Size}, nil
	}
	if err != nil && !errors.Is(absent(err), fs.ErrNotExist) {
		return Info{}, err
	}
	stop, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o, found := <-s.client.ListObjects(stop, s.block.Bucket, minio.ListObjectsOptions{Prefix: folderOf(object), Recursive: true, MaxKeys: 1})
	switch {
	case found && o.Err != nil:
		return Info{}, absent(o.Err)
	case found:
		return Info{Size: -1, Tree: true}, nil
	}
	return Info{}, fmt.Errorf("s3://%s/%s: %w", s.block.Bucket, object, fs.ErrNotExist)
}

// folderOf is the prefix of what lies below a key.
func folderOf(object string) string {
	if object == "" {
		return ""
	}
	return strings.TrimSuffix(object, "/") + "/"
}

func (s s3Store) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	info, err := s.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	if info.Tree {
		return nil, fmt.Errorf("s3://%s/%s %w", s.block.Bucket, s.object(key), ErrTree)
	}
	o, err := s.client.GetObject(ctx, s.block.Bucket, s.object(key), minio.GetObjectOptions{})
	if err != nil {
		return nil, absent(err)
	}
	return o, nil
}

func (s s3Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	_, err := s.client.PutObject(ctx, s.block.Bucket, s.object(key), r, size, minio.PutObjectOptions{PartSize: partSize})
	return err
}

// ready makes the bucket where the block asks for it.
func (s s3Store) ready(ctx context.Context) error {
	if s.block.CreateBucket == nil {
		return nil
	}
	exists, err := s.client.BucketExists(ctx, s.block.Bucket)
	if err != nil || exists {
		return err
	}
	err = s.client.MakeBucket(ctx, s.block.Bucket, minio.MakeBucketOptions{Region: s.block.Region})
	if code := minio.ToErrorResponse(err).Code; code == "BucketAlreadyOwnedByYou" {
		return nil // another task was first
	}
	return err
}

func (s s3Store) Delete(ctx context.Context, key string) error {
	object := s.object(key)
	if object == "" {
		return errors.New("a whole bucket is not deleted")
	}
	if err := s.client.RemoveObject(ctx, s.block.Bucket, object, minio.RemoveObjectOptions{}); err != nil {
		return err
	}
	below, err := s.List(ctx, key)
	if err != nil {
		return err
	}
	for _, o := range below {
		if err := s.client.RemoveObject(ctx, s.block.Bucket, folderOf(object)+o.Key, minio.RemoveObjectOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (s s3Store) List(ctx context.Context, key string) ([]Info, error) {
	prefix := folderOf(s.object(key))
	stop, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var found []Info
	for o := range s.client.ListObjects(stop, s.block.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, absent(o.Err)
		}
		name := strings.TrimPrefix(o.Key, prefix)
		if name == "" || strings.HasSuffix(name, "/") {
			continue // the mark of an empty folder
		}
		found = append(found, Info{Key: name, Size: o.Size})
	}
	return found, nil
}
