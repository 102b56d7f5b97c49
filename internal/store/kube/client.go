package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// client speaks to the API server in plain JSON. Answers to writes and lists are asked for as metadata only: what comes
// back must not grow with what is in an object either.
type client struct{ rest rest.Interface }

const (
	resource     = "runjournals"
	metaOnly     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metaListOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	// timeout is for one request where the configuration says none: no append may hang for ever.
	timeout = 30 * time.Second
)

func newClient(config *rest.Config) (client, error) {
	c := rest.CopyConfig(config)
	c.APIPath = "/apis"
	c.GroupVersion = &schema.GroupVersion{Group: v1alpha1.Group, Version: v1alpha1.Version}
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, ""
	if c.Timeout == 0 {
		c.Timeout = timeout
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // to read the Status of a refusal
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	r, err := rest.RESTClientFor(c)
	if err != nil {
		return client{}, fmt.Errorf("make a client for %s: %w", resource, err)
	}
	return client{r}, nil
}

// create makes an object and gives its resourceVersion.
func (c client) create(ctx context.Context, o *v1alpha1.RunJournal) (string, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	return version(c.rest.Post().Namespace(o.Metadata.Namespace).Resource(resource).SetHeader("Accept", metaOnly).Body(body).Do(ctx))
}

// patch merges into an object and gives its new resourceVersion.
func (c client) patch(ctx context.Context, namespace, name string, change patch) (string, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return "", err
	}
	return version(c.rest.Patch(types.MergePatchType).Namespace(namespace).Resource(resource).Name(name).
		SetHeader("Accept", metaOnly).Body(body).Do(ctx))
}

// patch is the JSON merge patch of a write.
type patch struct {
	Metadata *patchMeta        `json:"metadata,omitempty"`
	Spec     *patchSpec        `json:"spec,omitempty"`
	Data     map[string][]byte `json:"data"`
}

type patchMeta struct {
	ResourceVersion string `json:"resourceVersion"`
}

type patchSpec struct {
	Closed bool   `json:"closed,omitempty"`
	From   *int64 `json:"from,omitempty"`
}

func version(result rest.Result) (string, error) {
	body, err := result.Raw()
	if err != nil {
		return "", err
	}
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &o); err != nil {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	return o.ResourceVersion, nil
}

func (c client) get(ctx context.Context, namespace, name string) (*v1alpha1.RunJournal, error) {
	body, err := c.rest.Get().Namespace(namespace).Resource(resource).Name(name).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var o v1alpha1.RunJournal
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return &o, nil
}

// names lists the objects of a part of a run, sorted.
func (c client) names(ctx context.Context, namespace, uid string, part v1alpha1.RunJournalPart) ([]string, error) {
	var names []string
	for next := ""; ; {
		request := c.rest.Get().Namespace(namespace).Resource(resource).SetHeader("Accept", metaListOnly).
			Param("labelSelector", LabelRun+"="+uid+","+labelPart+"="+string(part)).Param("limit", "500")
		if next != "" {
			request.Param("continue", next)
		}
		body, err := request.Do(ctx).Raw()
		if err != nil {
			return nil, err
		}
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal(body, &list); err != nil {
			return nil, fmt.Errorf("read the list of %s: %w", resource, err)
		}
		for _, o := range list.Items {
			names = append(names, o.Name)
		}
		if next = list.Continue; next == "" {
			slices.SortFunc(names, strings.Compare)
			return names, nil
		}
	}
}

func (c client) delete(ctx context.Context, namespace, name string) error {
	return c.rest.Delete().Namespace(namespace).Resource(resource).Name(name).Do(ctx).Error()
}

// refused says whether an error means that the server did nothing and will do nothing: it looked and said no. After any
// other error a write may have happened, or may still happen.
func refused(err error) bool {
	for _, is := range []func(error) bool{
		apierrors.IsNotFound, apierrors.IsInvalid, apierrors.IsForbidden, apierrors.IsUnauthorized, apierrors.IsBadRequest,
		apierrors.IsRequestEntityTooLargeError, apierrors.IsMethodNotSupported, apierrors.IsNotAcceptable, apierrors.IsUnsupportedMediaType,
	} {
		if is(err) {
			return true
		}
	}
	return false
}

// taken says whether a write lost against another one.
func taken(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
