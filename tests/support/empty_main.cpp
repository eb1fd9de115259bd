// SPDX-License-Identifier: Apache-2.0
// The program of the precompiled headers' target; it is never run.
int main() {}
