package v1alpha1

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// CABundle is one or several certificates in PEM form. In JSON it is base64, as Kubernetes has it; the PEM text itself is
// read, too, because that is what one has at hand when writing a file.
type CABundle []byte

// UnmarshalJSON reads base64 or PEM text.
func (b *CABundle) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return errors.New("must be a text: certificates in PEM form, or base64 of that")
	}
	if strings.Contains(text, "-----BEGIN") {
		*b = []byte(text)
		return nil
	}
	pem, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil || (len(pem) > 0 && !bytes.Contains(pem, []byte("-----BEGIN"))) {
		return errors.New("must be certificates in PEM form, or base64 of that")
	}
	*b = pem
	return nil
}

// MarshalJSON writes base64.
func (b CABundle) MarshalJSON() ([]byte, error) {
	return json.Marshal(base64.StdEncoding.EncodeToString(b))
}
