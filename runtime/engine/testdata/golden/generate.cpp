// generate writes the golden of a model: what llama.cpp says of a few texts, with the model's own weights and with the
// same weights dequantised to F32. generate.sh builds and runs it; README.md describes the files.
//
//   generate REFERENCE.gguf MODEL.gguf OUT.bin OUT.json DESCRIPTION TEXT...

#include "llama.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

static constexpr int n_positions = 256; // tokens of a text
static constexpr int n_top       = 32;  // tokens of a position that have a bucket of their own

static void check(bool ok, const std::string & what) {
    if (!ok) {
        fprintf(stderr, "generate: %s\n", what.c_str());
        exit(1);
    }
}

static std::string read_file(const std::string & path) {
    std::ifstream in(path, std::ios::binary);
    check(in.good(), "open " + path);
    return { std::istreambuf_iterator<char>(in), {} };
}

// base_name cuts the folders and the last suffix.
static std::string base_name(const std::string & path) {
    const std::string name = path.substr(path.find_last_of('/') + 1);
    return name.substr(0, name.find_last_of('.'));
}

struct model_output {
    int n_vocab = 0;
    std::vector<std::vector<llama_token>> tokens; // of each text
    std::vector<std::vector<float>>       logits; // of each text, n_positions × n_vocab
};

// evaluate runs every text as one sequence in one batch. The reference keeps keys and values in F32 and takes the plain
// attention; a model is run with llama.cpp's defaults, as its users do.
static model_output evaluate(const char * path, bool reference, const std::vector<std::string> & texts) {
    llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = 0;
    llama_model * model = llama_model_load_from_file(path, mp);
    check(model != nullptr, std::string("load ") + path);
    const llama_vocab * vocab = llama_model_get_vocab(model);

    model_output out;
    out.n_vocab = llama_vocab_n_tokens(vocab);
    for (const std::string & text : texts) {
        std::vector<llama_token> tokens(text.size() + 2);
        const int n = llama_tokenize(vocab, text.data(), (int32_t) text.size(), tokens.data(), (int32_t) tokens.size(), true, true);
        check(n >= n_positions, "a text has " + std::to_string(n) + " tokens, too few");
        tokens.resize(n_positions);

        llama_context_params cp = llama_context_default_params();
        cp.n_ctx = cp.n_batch = cp.n_ubatch = n_positions;
        if (reference) {
            cp.type_k = cp.type_v = GGML_TYPE_F32;
            cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
        }
        llama_context * ctx = llama_init_from_model(model, cp);
        check(ctx != nullptr, "no context");

        llama_batch batch = llama_batch_init(n_positions, 0, 1);
        batch.n_tokens = n_positions;
        for (int i = 0; i < n_positions; i++) {
            batch.token[i]     = tokens[i];
            batch.pos[i]       = i;
            batch.n_seq_id[i]  = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i]    = 1;
        }
        check(llama_decode(ctx, batch) == 0, "decode");
        std::vector<float> logits;
        for (int i = 0; i < n_positions; i++) {
            const float * row = llama_get_logits_ith(ctx, i);
            logits.insert(logits.end(), row, row + out.n_vocab);
        }
        out.tokens.push_back(std::move(tokens));
        out.logits.push_back(std::move(logits));
        llama_batch_free(batch);
        llama_free(ctx);
    }
    llama_model_free(model);
    return out;
}

static std::vector<double> log_softmax(const float * logits, int n) {
    const double max = *std::max_element(logits, logits + n);
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += std::exp(logits[i] - max);
    }
    std::vector<double> out(n);
    for (int i = 0; i < n; i++) {
        out[i] = logits[i] - max - std::log(sum);
    }
    return out;
}

// divergence is the sum of p·ln(p/q) over the outcomes, in nats.
template <typename T> static double divergence(const std::vector<T> & log_p, const std::vector<T> & log_q) {
    double sum = 0;
    for (size_t i = 0; i < log_p.size(); i++) {
        const double p = std::exp((double) log_p[i]);
        if (p > 0) {
            sum += p * ((double) log_p[i] - (double) log_q[i]);
        }
    }
    return sum;
}

// buckets holds log_p of ids, and after them of all other tokens together.
static std::vector<float> buckets(const std::vector<double> & log_p, const std::vector<int> & ids) {
    std::vector<bool> taken(log_p.size());
    std::vector<float> out;
    for (int id : ids) {
        taken[id] = true;
        out.push_back((float) log_p[id]);
    }
    double rest = 0;
    for (size_t i = 0; i < log_p.size(); i++) {
        if (!taken[i]) {
            rest += std::exp(log_p[i]);
        }
    }
    out.push_back((float) std::log(rest));
    return out;
}

template <typename T> static void write(std::ofstream & out, const std::vector<T> & v) {
    static_assert(sizeof(T) == 4);
    out.write((const char *) v.data(), 4 * v.size()); // the machine is little-endian
}

struct totals {
    double kld = 0, kld_buckets = 0;
    int same_top = 0, n = 0;

    void add(const totals & t) {
        kld += t.kld;
        kld_buckets += t.kld_buckets;
        same_top += t.same_top;
        n += t.n;
    }
    std::string json() const {
        char s[200];
        snprintf(s, sizeof s, "{\"kld\": %.9f, \"kld_buckets\": %.9f, \"same_top\": %d, \"positions\": %d}", kld / n, kld_buckets / n, same_top, n);
        return s;
    }
};

int main(int argc, char ** argv) {
    check(argc > 6, "usage: generate REFERENCE.gguf MODEL.gguf OUT.bin OUT.json DESCRIPTION TEXT...");
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    const std::vector<std::string> paths(argv + 6, argv + argc);
    std::vector<std::string> texts;
    for (const std::string & path : paths) {
        texts.push_back(read_file(path));
    }
    const model_output ref  = evaluate(argv[1], true, texts);
    const model_output peer = evaluate(argv[2], false, texts);
    check(ref.n_vocab == peer.n_vocab && ref.tokens == peer.tokens, "the models have different vocabularies");

    std::ofstream bin(argv[3], std::ios::binary), json(argv[4]);
    bin << "GOLDEN1\n";
    write<uint32_t>(bin, { (uint32_t) (texts.size() * n_positions), n_top });
    json << "{\n  \"model\": \"" << base_name(argv[2]) << "\",\n  \"peer\": \"" << argv[5] << "\",\n  \"texts\": [\n";

    totals all;
    for (size_t t = 0; t < texts.size(); t++) {
        totals sum;
        for (int i = 0; i < n_positions; i++) {
            const auto log_p = log_softmax(&ref.logits[t][(size_t) i * ref.n_vocab], ref.n_vocab);
            const auto log_q = log_softmax(&peer.logits[t][(size_t) i * ref.n_vocab], ref.n_vocab);
            std::vector<int> ids(ref.n_vocab);
            std::iota(ids.begin(), ids.end(), 0);
            std::partial_sort(ids.begin(), ids.begin() + n_top, ids.end(), [&](int a, int b) { return log_p[a] != log_p[b] ? log_p[a] > log_p[b] : a < b; });
            ids.resize(n_top);
            const int peer_top = (int) (std::max_element(log_q.begin(), log_q.end()) - log_q.begin()); // the first of equals

            const auto p = buckets(log_p, ids), q = buckets(log_q, ids);
            write(bin, ids);
            write(bin, p);
            write(bin, q);
            write<int>(bin, { peer_top });
            sum.add({ divergence(log_p, log_q), divergence(p, q), peer_top == ids[0], 1 });
        }
        json << "    {\n      \"name\": \"" << base_name(paths[t]) << "\",\n      \"llama_cpp\": " << sum.json() << ",\n      \"tokens\": [";
        for (int i = 0; i < n_positions; i++) {
            json << (i ? ", " : "") << ref.tokens[t][i];
        }
        json << "]\n    }" << (t + 1 < texts.size() ? "," : "") << "\n";
        all.add(sum);
    }
    json << "  ],\n  \"llama_cpp\": " << all.json() << "\n}\n";
    bin.close();
    json.close();
    check(bin.good() && json.good(), "write the golden");
    printf("%s %s\n", base_name(argv[2]).c_str(), all.json().c_str());
    return 0;
}
