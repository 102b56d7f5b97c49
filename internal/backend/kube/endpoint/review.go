package endpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// How long an answer about a token counts, and how many are kept. The pod of a token that is good may be deleted meanwhile;
// one that is not may come from a pod that the API server learns of a moment later.
const (
	goodFor = time.Minute
	badFor  = 5 * time.Second
	maxKept = 10_000
)

// What a TokenReview says of a pod's token besides its user.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
)

// TokenReviews asks the API server whose tokens are, and remembers its answers for a short while.
type TokenReviews struct {
	client authenticationclient.TokenReviewInterface
	now    func() time.Time

	mu   sync.Mutex
	kept map[[sha256.Size]byte]*review
}

// review is what is known of one token; it is there once done is closed.
type review struct {
	done  chan struct{}
	pod   Pod
	err   error
	until time.Time
}

// NewTokenReviews makes a [Reviewer] from a client, such as clientset.AuthenticationV1().TokenReviews().
func NewTokenReviews(client authenticationclient.TokenReviewInterface) *TokenReviews {
	return &TokenReviews{client: client, now: time.Now, kept: map[[sha256.Size]byte]*review{}}
}

// Review implements [Reviewer].
func (t *TokenReviews) Review(ctx context.Context, token string) (Pod, error) {
	key := sha256.Sum256([]byte(token)) // no token is kept
	for {
		r, mine := t.lookup(key)
		if mine {
			r.pod, r.err = t.ask(ctx, token)
			t.settle(key, r)
			return r.pod, r.err
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return Pod{}, ctx.Err()
		}
		if r.err == nil || errors.Is(r.err, ErrDenied) {
			return r.pod, r.err
		}
		// Another request has asked and got no answer, perhaps because its own pod gave up: ask again.
		if ctx.Err() != nil {
			return Pod{}, ctx.Err()
		}
	}
}

// lookup gives what is known of a token, or makes room for it: then it is the caller's to ask.
func (t *TokenReviews) lookup(key [sha256.Size]byte) (r *review, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r = t.kept[key]; r != nil && (r.until.IsZero() || t.now().Before(r.until)) {
		return r, false
	}
	if len(t.kept) >= maxKept {
		t.sweep()
	}
	r = &review{done: make(chan struct{})}
	t.kept[key] = r
	return r, true
}

// sweep forgets what has run out, and then anything that is not being asked for.
func (t *TokenReviews) sweep() {
	for key, r := range t.kept {
		if !r.until.IsZero() && !t.now().Before(r.until) {
			delete(t.kept, key)
		}
	}
	for key, r := range t.kept {
		if len(t.kept) < maxKept {
			return
		}
		if !r.until.IsZero() {
			delete(t.kept, key)
		}
	}
}

// settle keeps an answer for as long as it counts; that none was given is not kept.
func (t *TokenReviews) settle(key [sha256.Size]byte, r *review) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case r.err == nil:
		r.until = t.now().Add(goodFor)
	case errors.Is(r.err, ErrDenied):
		r.until = t.now().Add(badFor)
	case t.kept[key] == r:
		delete(t.kept, key)
	}
	close(r.done)
}

// ask puts the token to the API server.
func (t *TokenReviews) ask(ctx context.Context, token string) (Pod, error) {
	answer, err := t.client.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{spec.TokenAudience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return Pod{}, fmt.Errorf("review a token: %w", err)
	}
	return podOf(answer.Status)
}

// podOf reads which pod a token was made for.
func podOf(status authenticationv1.TokenReviewStatus) (Pod, error) {
	if !status.Authenticated {
		return Pod{}, fmt.Errorf("%w: %s", ErrDenied, status.Error)
	}
	named := false
	for _, audience := range status.Audiences {
		named = named || audience == spec.TokenAudience
	}
	if !named { // an API server that knows no audiences takes any token
		return Pod{}, fmt.Errorf("%w: it is for the audiences %v", ErrDenied, status.Audiences)
	}
	account, isAccount := strings.CutPrefix(status.User.Username, "system:serviceaccount:")
	namespace, _, hasName := strings.Cut(account, ":")
	name, uid := status.User.Extra[extraPodName], status.User.Extra[extraPodUID]
	if !isAccount || !hasName || namespace == "" || len(name) != 1 || len(uid) != 1 {
		return Pod{}, fmt.Errorf("%w: it is not bound to a pod, but %s's", ErrDenied, status.User.Username)
	}
	return Pod{Namespace: namespace, Name: name[0], UID: uid[0]}, nil
}
