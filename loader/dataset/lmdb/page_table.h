// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dataset/lmdb/entries.h"
#include "dataset/lmdb/leaf_table.h"

// The file beside an LMDB that keeps the tables of its leaves, so that opening need not read the
// branch and leaf pages. All numbers are little-endian:
//     8 bytes   "MRpages1", the format
//     8 bytes   the LMDB's transaction
//     8 bytes   the bytes of its pages
//     8 bytes   how many tables there are
//     for each: 8 bytes the page of the tree's root, 8 the number of its entries, 8 the number of
//               its leaves, and for each leaf, in order, 12 bytes: the low 32 bits of its page and
//               of the number of its first entry, and the 16 bits above those of both
//     8 bytes   the XXH3-64 of all that is before

namespace millrace {

/// The table of a tree's leaves: as it is stored beside the file, if that is of this state of it,
/// or else made now; then `warnings` gets a sentence if what is stored is not used. Throws as
/// `LeafTable`.
std::shared_ptr<const LeafTable> stored_or_made_table(const LmdbFile& file, const LmdbTree& tree,
                                                      std::vector<std::string>& warnings);

/// Stores the tables of databases of one file beside it. Throws `Error`: `already_exists` if
/// another file has that name or somebody else writes it, `io`.
void store_tables(const std::vector<const Entries*>& databases);

}  // namespace millrace
