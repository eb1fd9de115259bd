// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dataset/lmdb/entries.h"
#include "dataset/lmdb/leaf_table.h"

// The file beside an LMDB that stores the tables of its leaves, so that opening need not read the
// branch and leaf pages. All numbers are little-endian:
//     8 bytes   "MRpages1", the format;
//     8 bytes   the LMDB's transaction number;
//     8 bytes   the length of its pages in bytes;
//     8 bytes   the number of tables;
//     for each table:
//         8 bytes   the page of the tree's root;
//         8 bytes   the number of its entries;
//         8 bytes   the number of its leaves;
//         12 bytes for each leaf, in order;
//     8 bytes   the XXH3-64 of the bytes before.
// The 12 bytes of a leaf hold the page and the number of its first entry, 48 bits each: the low 32
// bits of both numbers, then the upper 16 bits of both.

namespace millrace {

/// Returns the table of a tree's leaves: the table stored beside the file if it belongs to the
/// file's present state, otherwise a table that is built now. If a stored table is not used, the
/// reason is added to `warnings`. Throws the same errors as `LeafTable`.
std::shared_ptr<const LeafTable> stored_or_made_table(const LmdbFile& file, const LmdbTree& tree,
                                                      std::vector<std::string>& warnings);

/// Stores the leaf tables of a file's databases beside that file. Throws `Error`: `already_exists`
/// if another file has that name or another process is writing it, `io`.
void store_tables(const std::vector<const Entries*>& databases);

}  // namespace millrace
