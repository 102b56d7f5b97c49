package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A plugin never gets a token that the API server itself would take, whatever its hook asks for.
func TestTokensForHooks(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	made := 0
	core := fake.NewClientset()
	core.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
		made++
		r := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest).DeepCopy()
		r.Status = authenticationv1.TokenRequestStatus{Token: strings.Join(r.Spec.Audiences, ","), ExpirationTimestamp: metav1.NewTime(now.Add(time.Hour))}
		return true, r, nil
	})
	core.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		if len(r.Spec.Audiences) > 0 {
			t.Errorf("asked for the audiences %v and not for the API server's", r.Spec.Audiences)
		}
		r.Status.Authenticated = slices.Contains([]string{"api", "https://kubernetes.default.svc"}, r.Spec.Token)
		return true, r, nil
	})
	tokens := &accountTokens{core: core, namespace: "sluice", account: "sluice-controller", now: func() time.Time { return now }}
	for _, audience := range []string{"api", "https://kubernetes.default.svc"} {
		if got, err := tokens.Token(context.Background(), audience); err == nil || got != "" {
			t.Errorf("a token for the API server's audience %s was given out", audience)
		}
	}
	for range 2 {
		got, err := tokens.Token(context.Background(), "lineage")
		if err != nil || got != "lineage" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if made != 3 {
		t.Errorf("%d tokens were made, want 3: a good one is kept", made)
	}
}

// The controller lends its own credentials for the buckets that its settings name.
func TestBucketsOfTheController(t *testing.T) {
	s, err := parseSettings([]byte("artifactRepository: {s3: {bucket: shared}}\nownCredentialBuckets: [more]\n"), "test")
	if err != nil {
		t.Fatal(err)
	}
	for bucket, want := range map[string]bool{"shared": true, "more": true, "secret": false, "": false} {
		if got := s.lends(bucket); got != want {
			t.Errorf("bucket %q: %v, want %v", bucket, got, want)
		}
	}
	if (&controllerSettings{}).lends("shared") {
		t.Error("without settings a bucket is lent")
	}
}
