package taskhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// signatureVersion names the way to sign, so that another can come beside it.
const signatureVersion = "v1"

// MaxSkew is the default for how far a signature's time may be from the receiver's.
const MaxSkew = 5 * time.Minute

// Sign sets the headers that prove that a body was sent by who knows the secret, and when:
//
//	Sluice-Timestamp: 1767182400
//	Sluice-Signature: v1=<hex of HMAC-SHA256(secret, timestamp + "." + body)>
func Sign(header http.Header, secret, body []byte, now time.Time) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header.Set(v1alpha1.HeaderTimestamp, timestamp)
	header.Set(v1alpha1.HeaderSignature, signatureVersion+"="+hex.EncodeToString(mac(secret, timestamp, body)))
}

// Verify checks the headers that Sign sets, against any of several secrets (so that one can be replaced by another
// while both are in use). skew is how far the time may be off; 0 is [MaxSkew].
func Verify(header http.Header, secrets [][]byte, body []byte, now time.Time, skew time.Duration) error {
	timestamp, signature := header.Get(v1alpha1.HeaderTimestamp), header.Get(v1alpha1.HeaderSignature)
	if timestamp == "" || signature == "" {
		return fmt.Errorf("the request is not signed: headers %s and %s are missing", v1alpha1.HeaderTimestamp, v1alpha1.HeaderSignature)
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%s is no number of seconds", v1alpha1.HeaderTimestamp)
	}
	if skew <= 0 {
		skew = MaxSkew
	}
	if off := now.Sub(time.Unix(seconds, 0)); off > skew || off < -skew {
		return fmt.Errorf("the signature is too old, or the clocks differ by more than %s", skew)
	}
	text, ok := strings.CutPrefix(signature, signatureVersion+"=")
	got, err := hex.DecodeString(text)
	if !ok || err != nil {
		return fmt.Errorf("%s is not of the form %s=<hex>", v1alpha1.HeaderSignature, signatureVersion)
	}
	for _, secret := range secrets {
		if len(secret) > 0 && hmac.Equal(got, mac(secret, timestamp, body)) {
			return nil
		}
	}
	return errors.New("the signature does not fit: another secret, or the body was changed")
}

func mac(secret []byte, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(timestamp))
	h.Write([]byte{'.'})
	h.Write(body)
	return h.Sum(nil)
}
