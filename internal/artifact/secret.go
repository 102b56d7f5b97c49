package artifact

import "fmt"

// secretKey refers to a key of a Secret, as Kubernetes' SecretKeySelector does.
type secretKey struct {
	Name     string `json:"name"`
	Key      string `json:"key"`
	Optional bool   `json:"optional"`
}

// read gives what a reference refers to; nil refers to nothing.
func (k *secretKey) read(opts Options, field string) (string, error) {
	if k == nil || k.Key == "" {
		return "", nil
	}
	value, err := opts.secret(k.Name, k.Key)
	if err != nil {
		if k.Optional {
			return "", nil
		}
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return value, nil
}
