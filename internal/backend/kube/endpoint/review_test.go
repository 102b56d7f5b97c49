package endpoint

import (
	"errors"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// reviews is a reviewer over a fake API server that answers as status says.
func reviews(status authenticationv1.TokenReviewStatus) Reviewer {
	clients := fake.NewClientset()
	clients.PrependReactor("create", "tokenreviews", func(action ktesting.Action) (bool, runtime.Object, error) {
		review := action.(ktesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		if len(review.Spec.Audiences) != 1 || review.Spec.Audiences[0] != spec.TokenAudience {
			return true, nil, fmt.Errorf("asked for the audiences %v", review.Spec.Audiences)
		}
		return true, &authenticationv1.TokenReview{Status: status}, nil
	})
	return NewTokenReviews(clients.AuthenticationV1().TokenReviews())
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
			status := podStatus()
			test.change(&status)
			pod, err := reviews(status).Review(t.Context(), "token")
			if test.denied != errors.Is(err, ErrDenied) || !test.denied && (err != nil || pod != Pod{"ns", "pod", "uid"}) {
				t.Errorf("%+v, %v", pod, err)
			}
		})
	}
}
