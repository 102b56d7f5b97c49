package hook

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

var (
	dnsLabel  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	labelName = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
)

// Validate says everything that makes no sense in a hook's document, wherever it is used.
func Validate(h *v1alpha1.TaskHook) v1alpha1.Problems {
	v := validator{cluster: h.Cluster()}
	if !dnsLabel.MatchString(h.Metadata.Name) {
		v.addf("metadata.name", `must be lower case letters, digits and "-", 1 to 63 of them, not %q`, h.Metadata.Name)
	}
	if v.cluster && h.Metadata.Namespace != "" {
		v.addf("metadata.namespace", "a ClusterTaskHook has none")
	}
	v.spec(&h.Spec)
	return v.problems
}

type validator struct {
	cluster  bool
	problems v1alpha1.Problems
}

func (v *validator) addf(path, format string, args ...any) {
	v.problems = append(v.problems, v1alpha1.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (v *validator) spec(s *v1alpha1.TaskHookSpec) {
	oneOf(v, "spec.points", s.Points, v1alpha1.Pre, v1alpha1.Post)
	oneOf(v, "spec.scope", s.Scope, v1alpha1.ScopeTask, v1alpha1.ScopeGraph, v1alpha1.ScopeWorkflow)
	if s.FailurePolicy != "" {
		oneOf(v, "spec.failurePolicy", []v1alpha1.FailurePolicy{s.FailurePolicy}, v1alpha1.FailOnFailure, v1alpha1.IgnoreFailure)
	}
	v.within("spec.timeoutSeconds", int64(s.TimeoutSeconds), 300)
	v.within("spec.deadlineSeconds", s.DeadlineSeconds, 366*86400)
	v.within("spec.maxConcurrency", int64(s.MaxConcurrency), 1000)
	v.within("spec.batch", int64(s.Batch), v1alpha1.MaxBatch)
	if s.MaxRetries != nil {
		v.within("spec.maxRetries", int64(*s.MaxRetries), 1000)
	}
	v.retry(s.Retry)
	v.selector(s.Selector)
	for i, c := range s.MatchConditions {
		path := fmt.Sprintf("spec.matchConditions[%d]", i)
		if c.Name == "" {
			v.addf(path+".name", "is missing; messages use it")
		}
		if err := CheckCondition(c.Expression); err != nil {
			v.addf(path+".expression", "%v", err)
		}
	}
	v.reach(s)
}

// oneOf checks that every value is one of the allowed ones, and none is there twice.
func oneOf[T ~string](v *validator, path string, values []T, allowed ...T) {
	seen := map[T]bool{}
	for _, value := range values {
		switch {
		case !slices.Contains(allowed, value):
			v.addf(path, "must be of %v, not %q", allowed, value)
		case seen[value]:
			v.addf(path, "has %q twice", value)
		}
		seen[value] = true
	}
}

// within checks that a number is 0 (the default) or positive and at most limit.
func (v *validator) within(path string, n, limit int64) {
	if n < 0 || n > limit {
		v.addf(path, "must be from 0 to %d, not %d", limit, n)
	}
}

func (v *validator) retry(r *v1alpha1.RetryPolicy) {
	if r == nil {
		return
	}
	if r.Limit != nil {
		v.within("spec.retry.limit", int64(*r.Limit), 1000)
	}
	if b := r.Backoff; b != nil {
		for _, d := range []struct{ path, text string }{
			{"spec.retry.backoff.duration", b.Duration}, {"spec.retry.backoff.cap", b.Cap},
		} {
			if d.text == "" {
				continue
			}
			if _, err := parseDuration(d.text); err != nil {
				v.addf(d.path, "%v", err)
			}
		}
		if b.Factor != 0 && (b.Factor < 1 || b.Factor > 100) {
			v.addf("spec.retry.backoff.factor", "must be from 1 to 100, not %v", b.Factor)
		}
	}
}

func (v *validator) selector(s *v1alpha1.LabelSelector) {
	if s == nil {
		return
	}
	for key := range s.MatchLabels {
		if !labelName.MatchString(key) {
			v.addf("spec.selector.matchLabels", "%q is no name of a label", key)
		}
	}
	for i, r := range s.MatchExpressions {
		path := fmt.Sprintf("spec.selector.matchExpressions[%d]", i)
		if !labelName.MatchString(r.Key) {
			v.addf(path+".key", "%q is no name of a label", r.Key)
		}
		switch r.Operator {
		case "In", "NotIn":
			if len(r.Values) == 0 {
				v.addf(path+".values", "must have a value for operator %s", r.Operator)
			}
		case "Exists", "DoesNotExist":
			if len(r.Values) > 0 {
				v.addf(path+".values", "must be empty for operator %s", r.Operator)
			}
		default:
			v.addf(path+".operator", "must be In, NotIn, Exists or DoesNotExist, not %q", r.Operator)
		}
	}
}

// reach checks how the plugin is reached.
func (v *validator) reach(s *v1alpha1.TaskHookSpec) {
	var ways []string
	if s.HTTP != nil {
		ways = append(ways, "http")
		v.http(s.HTTP)
	}
	if s.Container != nil {
		ways = append(ways, "container")
		if s.Container.Image == "" {
			v.addf("spec.container.image", "is missing")
		}
	}
	if s.Builtin != nil {
		ways = append(ways, "builtin")
		if s.Builtin.Name == "" {
			v.addf("spec.builtin.name", "is missing: cache or lineage")
		}
	}
	switch {
	case len(ways) == 0:
		v.addf("spec", "must have one of http, container and builtin")
	case len(ways) > 1:
		v.addf("spec", "must have only one of http, container and builtin, not %s", strings.Join(ways, " and "))
	}
	if s.Batch > 1 && s.HTTP == nil {
		v.addf("spec.batch", "is for http hooks only")
	}
}

func (v *validator) http(h *v1alpha1.HTTPHook) {
	switch {
	case h.URL == "" && h.Service == nil:
		v.addf("spec.http", "must have url or service")
	case h.URL != "" && h.Service != nil:
		v.addf("spec.http", "must have only one of url and service")
	case h.URL != "":
		v.url("spec.http.url", h.URL)
	default:
		v.service(h.Service)
	}
	if len(h.CABundle) > 0 {
		if strings.HasPrefix(h.URL, "http:") {
			v.addf("spec.http.caBundle", "needs an https url")
		}
		if err := checkBundle(h.CABundle); err != nil {
			v.addf("spec.http.caBundle", "%v", err)
		}
	}
	if h.Auth != nil {
		v.auth(h.Auth)
	}
}

func (v *validator) url(path, text string) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		v.addf(path, "is no URL: %v", err)
	case u.Scheme != "http" && u.Scheme != "https":
		v.addf(path, "must begin with https:// or http://, not %q", text)
	case u.Hostname() == "":
		v.addf(path, "has no host: %q", text)
	case u.User != nil:
		v.addf(path, "must not contain a user or password; use spec.http.auth")
	case u.Fragment != "":
		v.addf(path, "must not have a fragment (#%s)", u.Fragment)
	}
}

func (v *validator) service(s *v1alpha1.ServiceReference) {
	if !dnsLabel.MatchString(s.Name) {
		v.addf("spec.http.service.name", "%q is no name of a Service", s.Name)
	}
	if v.cluster && s.Namespace == "" {
		v.addf("spec.http.service.namespace", "is missing; a ClusterTaskHook has no namespace of its own")
	}
	if s.Port < 0 || s.Port > 65535 {
		v.addf("spec.http.service.port", "must be from 1 to 65535, not %d", s.Port)
	}
	if s.Path != "" && !strings.HasPrefix(s.Path, "/") {
		v.addf("spec.http.service.path", "must begin with /, not %q", s.Path)
	}
}

func (v *validator) auth(a *v1alpha1.HTTPAuth) {
	switch {
	case a.HMAC == nil && a.ServiceAccountToken == nil:
		v.addf("spec.http.auth", "must have hmac or serviceAccountToken")
	case a.HMAC != nil && a.ServiceAccountToken != nil:
		v.addf("spec.http.auth", "must have only one of hmac and serviceAccountToken")
	case a.ServiceAccountToken != nil && a.ServiceAccountToken.Audience == "":
		v.addf("spec.http.auth.serviceAccountToken.audience", "is missing: who the token is for")
	case a.HMAC != nil:
		v.secret("spec.http.auth.hmac.secretFrom", a.HMAC.SecretFrom)
	}
}

func (v *validator) secret(path string, s v1alpha1.SecretSource) {
	n := 0
	for _, set := range []bool{s.File != "", s.Env != "", s.SecretKeyRef != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		v.addf(path, "must have exactly one of file, env and secretKeyRef")
	}
	if ref := s.SecretKeyRef; ref != nil && (ref.Name == "" || ref.Key == "") {
		v.addf(path+".secretKeyRef", "must have name and key")
	}
}

// checkBundle checks that every block is a certificate, and that there is one.
func checkBundle(bundle []byte) error {
	n := 0
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("must have certificates only, not %s", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d cannot be read: %w", n+1, err)
		}
		n++
	}
	if n == 0 {
		return fmt.Errorf("has no certificate")
	}
	return nil
}

// checkLocal says what a document asks for that is there on a cluster only.
func checkLocal(s *v1alpha1.TaskHookSpec) v1alpha1.Problems {
	var v validator
	if s.Container != nil {
		v.addf("spec.container", "runs inside a task's pod, which there is on a cluster only; use http or builtin")
	}
	if h := s.HTTP; h != nil {
		if h.Service != nil {
			v.addf("spec.http.service", "is there on a cluster only; use spec.http.url")
		}
		if h.Auth != nil && h.Auth.ServiceAccountToken != nil {
			v.addf("spec.http.auth.serviceAccountToken", "is there on a cluster only; use spec.http.auth.hmac")
		}
		if h.Auth != nil && h.Auth.HMAC != nil && h.Auth.HMAC.SecretFrom.SecretKeyRef != nil {
			v.addf("spec.http.auth.hmac.secretFrom.secretKeyRef", "is there on a cluster only; use file or env")
		}
	}
	return v.problems
}
