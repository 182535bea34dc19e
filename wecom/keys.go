package wecom

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha1" // which the vendor signs with
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// KeyPair is what signs and encrypts the callbacks of an application: the two texts of the vendor's console.
type KeyPair struct {
	Token Secret `json:"token" yaml:"token"`
	// AESKey is the EncodingAESKey, 43 letters and digits.
	AESKey Secret `json:"aes_key" yaml:"aes_key"`
}

// Sizes of the vendor's envelope: random bytes, the length of the text, and PKCS#7 padding to blocks of 32 bytes,
// which are not those of AES.
const (
	randomSize = 16
	lengthSize = 4
	padBlock   = 32
)

// Keys open and seal callbacks.
type Keys struct {
	receiver string
	pairs    []pair
}

type pair struct {
	token string
	iv    []byte
	block cipher.Block
}

// NewKeys returns the keys of a receiver, which is the corp id. While keys are changed there are several pairs: all of
// them open, the first one seals.
func NewKeys(receiver string, pairs ...KeyPair) (*Keys, error) {
	if receiver == "" || len(pairs) == 0 {
		return nil, driver.NewError(ferry.ErrInvalid, "callbacks have no receiver or no key pair",
			"give the corp id, and token and EncodingAESKey of the callback's settings", nil)
	}
	k := &Keys{receiver: receiver}
	for i, p := range pairs {
		key, err := base64.StdEncoding.DecodeString(string(p.AESKey) + "=")
		if err != nil || len(key) != 32 || p.Token == "" {
			return nil, driver.NewError(ferry.ErrInvalid,
				fmt.Sprintf("key pair %d of the callback has no token or no AES key of 43 characters", i+1),
				"copy both from the callback's settings", nil) // without the cause: it may show the key
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("key pair %d of the callback cannot be used", i+1),
				"copy it anew", nil)
		}
		k.pairs = append(k.pairs, pair{token: string(p.Token), iv: key[:aes.BlockSize], block: block})
	}
	return k, nil
}

// Format names it alone: fmt would show secrets in fields that are not exported.
func (k *Keys) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "wecom.Keys of "+k.receiver) }

// Open verifies what the vendor sent and returns the text in it. A wrong signature and a wrong receiver are ErrRefused;
// what is signed and still cannot be read is ErrInvalid.
func (k *Keys) Open(signature, timestamp, nonce, encrypted string) ([]byte, error) {
	var unopened error
	for _, p := range k.pairs {
		want := p.sign(timestamp, nonce, encrypted)
		if subtle.ConstantTimeCompare([]byte(want), []byte(signature)) != 1 {
			continue
		}
		text, err := k.open(p, encrypted)
		if err == nil {
			return text, nil
		}
		unopened = err // another pair may have the same token, and another AES key
	}
	if unopened != nil {
		return nil, unopened
	}
	return nil, driver.NewError(ferry.ErrRefused, "the signature of a callback is wrong",
		"compare token and EncodingAESKey with the callback's settings", nil)
}

// Seal signs and encrypts a text with the first pair, as the vendor does.
func (k *Keys) Seal(text []byte, timestamp, nonce string) (signature, encrypted string) {
	plain := make([]byte, randomSize, randomSize+lengthSize+len(text)+len(k.receiver)+padBlock)
	_, _ = rand.Read(plain) // never fails
	plain = binary.BigEndian.AppendUint32(plain, uint32(len(text)))
	plain = append(append(plain, text...), k.receiver...)
	pad := padBlock - len(plain)%padBlock
	plain = append(plain, bytes.Repeat([]byte{byte(pad)}, pad)...)
	p := k.pairs[0]
	cipher.NewCBCEncrypter(p.block, p.iv).CryptBlocks(plain, plain)
	encrypted = base64.StdEncoding.EncodeToString(plain)
	return p.sign(timestamp, nonce, encrypted), encrypted
}

// sign returns the signature: SHA-1 over the four texts in order.
func (p pair) sign(timestamp, nonce, encrypted string) string {
	texts := []string{p.token, timestamp, nonce, encrypted}
	slices.Sort(texts)
	sum := sha1.Sum([]byte(strings.Join(texts, "")))
	return hex.EncodeToString(sum[:])
}

func (k *Keys) open(p pair, encrypted string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(encrypted)
	if err != nil || len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return nil, unreadable("is not base64 of whole blocks")
	}
	cipher.NewCBCDecrypter(p.block, p.iv).CryptBlocks(data, data)
	data, ok := unpad(data)
	if !ok || len(data) < randomSize+lengthSize {
		return nil, unreadable("has wrong padding")
	}
	size := uint64(binary.BigEndian.Uint32(data[randomSize:]))
	data = data[randomSize+lengthSize:]
	if size > uint64(len(data)) {
		return nil, unreadable("is shorter than it says")
	}
	text, receiver := data[:size], data[size:]
	if subtle.ConstantTimeCompare(receiver, []byte(k.receiver)) != 1 {
		return nil, driver.NewError(ferry.ErrRefused, "a callback is for another receiver",
			"see that the corp id is the one of the callback", nil)
	}
	return text, nil
}

// unpad removes PKCS#7 padding. The text was signed, so that what it tells about wrong padding helps nobody.
func unpad(data []byte) ([]byte, bool) {
	pad := int(data[len(data)-1])
	if pad < 1 || pad > padBlock || pad > len(data) {
		return nil, false
	}
	for _, b := range data[len(data)-pad:] {
		if int(b) != pad {
			return nil, false
		}
	}
	return data[:len(data)-pad], true
}

func unreadable(why string) error {
	return driver.NewError(ferry.ErrInvalid, "the text of a callback "+why,
		"compare EncodingAESKey with the callback's settings", nil)
}
