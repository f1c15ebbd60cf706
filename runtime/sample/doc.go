// Package sample chooses a token from a row of logits.
//
// A choice is a function of the logits, the parameters, the tokens before it and
// its position among the emitted tokens, and of nothing else: everything is
// computed in float64 in one stated order, and each position has a random number
// of its own. So a request gives the same tokens whatever its batch, and whether
// or not a draft proposed them.
//
// The order, for temperature T above 0:
//
//  1. Candidates are the tokens whose logit is not −Inf (a grammar masks tokens
//     with −Inf before), in the order of their ids.
//  2. Penalties change the logits of tokens in the last RepeatLastN.
//  3. Top-k keeps the k largest logits, the lower id among equals, and leaves
//     them in that order.
//  4. Top-p takes exp(l − max), sums it in the order of ids, and keeps the
//     shortest run of the largest whose sum reaches TopP of that; it too leaves
//     them largest first.
//  5. Min-p keeps the candidates with exp(l − max) ≥ MinP.
//  6. p = exp((l − max)/T), summed in the order that now stands. The first token
//     whose running sum reaches u of the total is chosen.
//
// Temperature 0 is greedy: after the penalties, the largest logit, the lowest
// id among equals. −0 and +0 are equal throughout.
//
// The uniform number u of position i is made of words 2i and 2i+1 of the Mersenne
// Twister mt19937, as std::uniform_real_distribution<double> makes it.
package sample
