// Tells the script of characters, by blocks of Unicode. Languages are not told apart within a
// script. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace trireme {

// The scripts that are counted; the first stands for all others.
inline constexpr std::array<std::string_view, 25> kScriptNames = {
    "other",    "latin",    "arabic",     "cyrillic", "greek",    "hebrew",   "armenian",
    "georgian", "ethiopic", "devanagari", "bengali",  "gurmukhi", "gujarati", "tamil",
    "telugu",   "kannada",  "malayalam",  "sinhala",  "thai",     "lao",      "myanmar",
    "khmer",    "hangul",   "kana",       "han"};

// Returns the number, in kScriptNames, of a letter's or mark's script.
std::size_t script_number(char32_t letter);

}  // namespace trireme
