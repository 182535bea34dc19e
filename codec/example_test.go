package codec_test

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/codec"
)

func Example() {
	type order struct {
		ID    int    `json:"id"`
		Total string `json:"total"`
	}
	data, err := codec.JSON.Marshal(context.Background(), "orders", order{42, "19.90"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var back order
	if err := codec.JSON.Unmarshal(context.Background(), "orders", data, &back); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %s %+v\n", codec.JSON.ContentType(), data, back)
	// Output: application/json {"id":42,"total":"19.90"} {ID:42 Total:19.90}
}

func ExampleForContentType() {
	for _, ct := range []string{"Application/JSON; charset=utf-8", "application/vnd.acme+json", "image/png"} {
		c, ok := codec.ForContentType(ct, codec.JSON, codec.Raw)
		if !ok {
			fmt.Println(ct, "has no codec")
			continue
		}
		fmt.Println(ct, "is read as", c.ContentType())
	}
	// Output:
	// Application/JSON; charset=utf-8 is read as application/json
	// application/vnd.acme+json is read as application/json
	// image/png has no codec
}
