package endpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// reviews is a TokenReviews over a fake API server that answers as status says.
func reviews(status func(token string) (authenticationv1.TokenReviewStatus, error)) (t *TokenReviews, asked *[]string) {
	clients := fake.NewClientset()
	var mu sync.Mutex
	asked = &[]string{}
	clients.PrependReactor("create", "tokenreviews", func(action ktesting.Action) (bool, runtime.Object, error) {
		review := action.(ktesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		if len(review.Spec.Audiences) != 1 || review.Spec.Audiences[0] != spec.TokenAudience {
			return true, nil, fmt.Errorf("asked for the audiences %v", review.Spec.Audiences)
		}
		mu.Lock()
		*asked = append(*asked, review.Spec.Token)
		mu.Unlock()
		said, err := status(review.Spec.Token)
		return true, &authenticationv1.TokenReview{Status: said}, err
	})
	return NewTokenReviews(clients.AuthenticationV1().TokenReviews()), asked
}

// podStatus is what an API server says of a pod's token.
func podStatus() authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{spec.TokenAudience},
		User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:ns:default",
			Extra:    map[string]authenticationv1.ExtraValue{extraPodName: {"pod"}, extraPodUID: {"uid"}},
		},
	}
}

func TestTokenReview(t *testing.T) {
	tests := map[string]struct {
		change func(s *authenticationv1.TokenReviewStatus)
		denied bool
	}{
		"a pod's token":        {change: func(*authenticationv1.TokenReviewStatus) {}},
		"not authentic":        {func(s *authenticationv1.TokenReviewStatus) { s.Authenticated, s.Error = false, "expired" }, true},
		"another audience":     {func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"https://kubernetes"} }, true},
		"no audience":          {func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil }, true},
		"a person's":           {func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:admin" }, true},
		"an account's own":     {func(s *authenticationv1.TokenReviewStatus) { s.User.Extra = nil }, true},
		"a pod without a UID":  {func(s *authenticationv1.TokenReviewStatus) { delete(s.User.Extra, extraPodUID) }, true},
		"several pods'":        {func(s *authenticationv1.TokenReviewStatus) { s.User.Extra[extraPodName] = []string{"a", "b"} }, true},
		"an account of no one": {func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:serviceaccount:" }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, _ := reviews(func(string) (authenticationv1.TokenReviewStatus, error) {
				status := podStatus()
				test.change(&status)
				return status, nil
			})
			pod, err := r.Review(t.Context(), "token")
			if test.denied != errors.Is(err, ErrDenied) || !test.denied && (err != nil || pod != Pod{"ns", "pod", "uid"}) {
				t.Errorf("%+v, %v", pod, err)
			}
		})
	}
}

func TestTokenReviewsAreRemembered(t *testing.T) {
	down := errors.New("connection refused")
	r, asked := reviews(func(token string) (authenticationv1.TokenReviewStatus, error) {
		switch token {
		case "bad":
			return authenticationv1.TokenReviewStatus{}, nil
		case "down":
			return authenticationv1.TokenReviewStatus{}, down
		}
		return podStatus(), nil
	})
	now := time.Unix(1000, 0)
	r.now = func() time.Time { return now }
	ask := func(token string, want int) {
		t.Helper()
		before := len(*asked)
		_, err := r.Review(t.Context(), token)
		if (token == "good") != (err == nil) || (token == "bad") != errors.Is(err, ErrDenied) || (token == "down") != errors.Is(err, down) {
			t.Errorf("%s: %v", token, err)
		}
		if got := len(*asked) - before; got != want {
			t.Errorf("%s: asked %d times, want %d", token, got, want)
		}
	}
	for _, token := range []string{"good", "bad"} {
		ask(token, 1)
		ask(token, 0)
	}
	ask("down", 1)
	ask("down", 1)
	now = now.Add(badFor)
	ask("good", 0)
	ask("bad", 1)
	now = now.Add(goodFor)
	ask("good", 1)
}

func TestTokenReviewIsAskedForOnceByMany(t *testing.T) {
	open := make(chan struct{})
	r, asked := reviews(func(string) (authenticationv1.TokenReviewStatus, error) {
		<-open
		return podStatus(), nil
	})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if pod, err := r.Review(context.Background(), "token"); err != nil || pod.UID != "uid" {
				t.Errorf("%+v, %v", pod, err)
			}
		})
	}
	close(open)
	all.Wait()
	if len(*asked) != 1 {
		t.Errorf("asked %d times", len(*asked))
	}
}

func TestRememberedTokensAreBounded(t *testing.T) {
	r, _ := reviews(func(string) (authenticationv1.TokenReviewStatus, error) {
		return authenticationv1.TokenReviewStatus{}, nil
	})
	now := time.Unix(1000, 0)
	r.now = func() time.Time { return now }
	for i := range maxKept + 100 {
		if _, err := r.Review(t.Context(), fmt.Sprint(i)); !errors.Is(err, ErrDenied) {
			t.Fatal(err)
		}
	}
	if len(r.kept) > maxKept {
		t.Errorf("%d are kept", len(r.kept))
	}
}
