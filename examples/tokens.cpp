// SPDX-License-Identifier: Apache-2.0
//
//   tokens DATASET [--vocabulary N] [--epochs N] [--batch-size N] [--rate R] [--holdout SHARE]
//
// A small language model on windows of a token stream. It predicts the next token from the previous
// one by a table of logits with a softmax. It is trained by gradient descent on the host. DATASET
// describes the stream, a .npy file of token numbers, and its windows, which overlap by one token:
//
//   {"format": "arrays",
//    "fields": {"tokens": {"npy": "tokens.npy", "window": {"length": 65, "stride": 64}}}}
//
// Windows come in random order over the whole stream. No image library is linked.

#include <millrace/host_device.h>
#include <millrace/pipeline.h>
#include <millrace/raw_transform.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "arguments.h"

namespace {

struct Options {
  std::string dataset{};
  std::uint64_t vocabulary = 256;
  std::uint64_t epochs = 5;
  std::uint64_t batch_size = 32;
  double rate = 2;
  double holdout = 0.1;
};

Options parse(int argc, char** argv) {
  Arguments arguments(argc, argv);
  Options options{.dataset = arguments.dataset()};
  arguments.take("--vocabulary", options.vocabulary);
  arguments.take("--epochs", options.epochs);
  arguments.take("--batch-size", options.batch_size);
  arguments.take("--rate", options.rate);
  arguments.take("--holdout", options.holdout);
  arguments.finish();
  if (options.vocabulary < 1 || options.vocabulary > 65536)
    throw std::invalid_argument("--vocabulary must be from 1 to 65536");
  if (!(options.holdout > 0 && options.holdout < 1))
    throw std::invalid_argument("--holdout must be between 0 and 1");
  return options;
}

/// A table with the logits of the next token for each token.
class Bigrams {
 public:
  explicit Bigrams(std::size_t vocabulary)
      : vocabulary_(vocabulary), logits_(vocabulary * vocabulary), odds_(vocabulary) {}

  struct Sums {
    double loss = 0;
    double tokens = 0;
  };

  /// Processes a window's pairs of neighbours, and makes a step along each one's gradient if `rate`
  /// > 0.
  template <typename Token>
  void look(std::span<const Token> window, double rate, Sums& sums) {
    for (std::size_t n = 0; n + 1 < window.size(); ++n) {
      const std::size_t next = checked(window[n + 1]);
      float* const row = &logits_[checked(window[n]) * vocabulary_];
      const float largest = *std::max_element(row, row + vocabulary_);
      double sum = 0;
      for (std::size_t token = 0; token < vocabulary_; ++token)
        sum += odds_[token] = std::exp(double{row[token]} - double{largest});
      sums.loss -= std::log(odds_[next] / sum);
      sums.tokens += 1;
      if (rate == 0) continue;
      for (std::size_t token = 0; token < vocabulary_; ++token)
        row[token] -= static_cast<float>(rate * (odds_[token] / sum - (token == next ? 1 : 0)));
    }
  }

 private:
  template <typename Token>
  std::size_t checked(Token token) const {
    const auto number = static_cast<std::uint64_t>(token);  // a negative number becomes a large one
    if (number < vocabulary_) return static_cast<std::size_t>(number);
    throw std::runtime_error("token " + std::to_string(token) + " is not below --vocabulary " +
                             std::to_string(vocabulary_));
  }

  std::size_t vocabulary_;
  std::vector<float> logits_;
  std::vector<double> odds_;
};

/// Processes a batch's windows; the tokens may have any integer type.
void look(Bigrams& model, const millrace::Batch& batch, double rate, Bigrams::Sums& sums) {
  const millrace::Tensor tokens = batch["tokens"];
  const auto windows = [&](auto type) {
    using Token = decltype(type);
    const std::span<const Token> all = tokens.as<Token>();
    const std::size_t length = tokens.shape[1];
    for (std::size_t window = 0; window < batch.size(); ++window)
      model.look(all.subspan(window * length, length), rate, sums);
  };
  switch (tokens.dtype) {
    case millrace::DType::uint8:
      return windows(std::uint8_t{});
    case millrace::DType::uint16:
      return windows(std::uint16_t{});
    case millrace::DType::int32:
      return windows(std::int32_t{});
    case millrace::DType::uint32:
      return windows(std::uint32_t{});
    case millrace::DType::int64:
      return windows(std::int64_t{});
    default:
      throw std::runtime_error(std::string("tokens are ") + millrace::to_string(tokens.dtype) +
                               "; they must be integers");
  }
}

void train(const Options& options) {
  const auto dataset = millrace::open_dataset(options.dataset);
  const auto transform = millrace::raw_transform(*dataset);
  if (const auto& tokens = transform->spec().fields()[transform->spec().index_of("tokens")];
      tokens.variable || tokens.shape.rank() != 1)
    throw std::invalid_argument(options.dataset + " has no windows in its field \"tokens\"");
  const auto held_out = [&](std::uint64_t index) {
    return millrace::Random(3, index).uniform() < options.holdout;  // the same records in every run
  };
  const auto trained_on = [&](std::uint64_t index) { return !held_out(index); };
  const auto runtime = millrace::make_runtime();
  const auto device = std::make_shared<millrace::HostDevice>();
  const auto pipeline = [&](const millrace::Order& order) {
    return millrace::Pipeline(dataset, transform, device,
                              {.batch_size = static_cast<std::size_t>(options.batch_size),
                               .seed = 7,
                               .order = order,
                               .epochs = options.epochs,
                               .runtime = runtime});
  };
  millrace::Pipeline training =
      pipeline(millrace::Order::shuffled().filtered(dataset->size(), trained_on));
  millrace::Pipeline evaluation =
      pipeline(millrace::Order::sequential().filtered(dataset->size(), held_out));

  Bigrams model(static_cast<std::size_t>(options.vocabulary));
  for (std::uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const double rate = options.rate / (1 + static_cast<double>(epoch));
    Bigrams::Sums trained;
    Bigrams::Sums evaluated;
    for (bool last = false; !last;) {
      const millrace::Batch batch = training.next();
      last = batch.last_in_epoch();
      look(model, batch, rate, trained);
    }
    for (bool last = false; !last;) {
      const millrace::Batch batch = evaluation.next();
      last = batch.last_in_epoch();
      look(model, batch, 0, evaluated);
    }
    std::printf("epoch %llu: loss %.3f, held out %.3f, of %.0f tokens\n",
                static_cast<unsigned long long>(epoch), trained.loss / trained.tokens,
                evaluated.loss / evaluated.tokens, trained.tokens);
  }
  std::printf("%s\n", training.report().verdict.text.c_str());
}

}  // namespace

int main(int argc, char** argv) try {
  train(parse(argc, argv));
} catch (const std::exception& error) {
  std::cerr << "tokens: " << error.what() << '\n';
  return 1;
}
