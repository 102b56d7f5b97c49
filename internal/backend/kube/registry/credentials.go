package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// entry is what a pull secret says of one registry.
type entry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"` // "username:password" in base64
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// credentials are those for a repository, the best fit of each secret, in the order in which a kubelet would try them:
// the pod's secrets, then those of its service account. Secrets that are not there are left out, as a kubelet does.
func (i *Images) credentials(ctx context.Context, namespace string, secrets []string, serviceAccount string, repository name.Repository) ([]authn.Authenticator, error) {
	if i.cfg.Client == nil {
		return nil, nil
	}
	core := i.cfg.Client.CoreV1()
	if serviceAccount == "" {
		serviceAccount = "default"
	}
	if len(secrets) == 0 { // else Kubernetes does not give the pod those of its service account
		account, err := core.ServiceAccounts(namespace).Get(ctx, serviceAccount, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("read the service account %s: %w", serviceAccount, err)
		}
		if err == nil {
			for _, s := range account.ImagePullSecrets {
				secrets = append(secrets, s.Name)
			}
		}
	}
	var out []authn.Authenticator
	for _, secret := range secrets {
		s, err := core.Secrets(namespace).Get(ctx, secret, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the pull secret %s: %w", secret, err)
		}
		entries, err := entriesOf(s)
		if err != nil {
			return nil, fmt.Errorf("pull secret %s: %w", secret, err)
		}
		if e, ok := fit(entries, repository); ok {
			auth, err := e.authenticator()
			if err != nil {
				return nil, fmt.Errorf("pull secret %s: %w", secret, err)
			}
			out = append(out, auth)
		}
	}
	return out, nil
}

// entriesOf reads a pull secret in either of its forms.
func entriesOf(s *corev1.Secret) (map[string]entry, error) {
	if data, ok := s.Data[corev1.DockerConfigJsonKey]; ok {
		var file struct {
			Auths map[string]entry `json:"auths"`
		}
		if err := json.Unmarshal(data, &file); err != nil {
			return nil, fmt.Errorf("%s is no JSON of the form that is needed", corev1.DockerConfigJsonKey) // the cause may show a password
		}
		return file.Auths, nil
	}
	var entries map[string]entry
	if data, ok := s.Data[corev1.DockerConfigKey]; ok {
		if err := json.Unmarshal(data, &entries); err != nil {
			return nil, fmt.Errorf("%s is no JSON of the form that is needed", corev1.DockerConfigKey)
		}
	}
	return entries, nil
}

// fit gives the entry for a repository: of the registry, its host may have wildcards, and the longest path around the
// repository.
func fit(entries map[string]entry, repository name.Repository) (entry, bool) {
	best, found := "", false
	names := make([]string, 0, len(entries))
	for n := range entries {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		host, folder := split(n)
		if !sameHost(host, repository.RegistryStr()) {
			continue
		}
		if folder != "" && repository.RepositoryStr() != folder && !strings.HasPrefix(repository.RepositoryStr(), folder+"/") {
			continue
		}
		if _, bestFolder := split(best); !found || len(folder) > len(bestFolder) {
			best, found = n, true
		}
	}
	return entries[best], found
}

// split takes an entry's name apart: scheme and API version mean nothing.
func split(n string) (host, folder string) {
	n = strings.TrimPrefix(strings.TrimPrefix(n, "https://"), "http://")
	host, folder, _ = strings.Cut(strings.Trim(n, "/"), "/")
	if folder == "v1" || folder == "v2" {
		folder = ""
	}
	return host, folder
}

func sameHost(pattern, host string) bool {
	if docker := name.DefaultRegistry; host == docker {
		return slices.Contains([]string{docker, "docker.io", "registry-1.docker.io"}, pattern)
	}
	patterns, hosts := strings.Split(pattern, "."), strings.Split(host, ".")
	if len(patterns) != len(hosts) {
		return false
	}
	for i := range patterns {
		if ok, err := path.Match(patterns[i], hosts[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

func (e entry) authenticator() (authn.Authenticator, error) {
	c := authn.AuthConfig{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken, RegistryToken: e.RegistryToken}
	if e.Auth != "" && c.Username == "" {
		data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(e.Auth))
		if err != nil {
			return nil, fmt.Errorf("auth is no base64")
		}
		user, password, ok := strings.Cut(strings.TrimRight(string(data), "\x00"), ":")
		if !ok {
			return nil, fmt.Errorf("auth has no colon between user and password")
		}
		c.Username, c.Password = user, password
	}
	return authn.FromConfig(c), nil
}
