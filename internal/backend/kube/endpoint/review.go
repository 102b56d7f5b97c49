package endpoint

import (
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/tokenreview"
)

// What a TokenReview says of a pod's token besides its user.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
)

// NewTokenReviews makes a [Reviewer] from a client, such as clientset.AuthenticationV1().TokenReviews().
func NewTokenReviews(client authenticationclient.TokenReviewInterface) Reviewer {
	return tokenreview.New(tokenreview.Config[Pod]{Client: client, Audience: spec.TokenAudience, Read: podOf})
}

// podOf reads which pod a token was made for.
func podOf(_ string, status authenticationv1.TokenReviewStatus) (Pod, error) {
	account, isAccount := strings.CutPrefix(status.User.Username, "system:serviceaccount:")
	namespace, _, hasName := strings.Cut(account, ":")
	name, uid := status.User.Extra[extraPodName], status.User.Extra[extraPodUID]
	if !isAccount || !hasName || namespace == "" || len(name) != 1 || len(uid) != 1 {
		return Pod{}, fmt.Errorf("%w: it is not bound to a pod, but %s's", ErrDenied, status.User.Username)
	}
	return Pod{Namespace: namespace, Name: name[0], UID: uid[0]}, nil
}
