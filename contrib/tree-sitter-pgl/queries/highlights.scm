[(line_comment) (block_comment)] @comment
(include) @keyword.import
["if" "then" "else" "every" "do"] @keyword
(number) @number
(string) @string
(quoted) @string.special
(regex) @string.regexp
(type (identifier) @type)
(declaration name: (identifier) @variable)
(call name: (identifier) @function)
(path . (identifier) @variable)
(path (identifier) (identifier) @property)
((path . (identifier) @boolean .) (#any-of? @boolean "yes" "no" "true" "false" "on" "off"))
(moment) @constant.builtin
((path . (identifier) @type.builtin .)
  (#any-of? @type.builtin "msec" "sec" "min" "hour" "day" "year" "bit" "Byte" "Kb" "KB" "Mb" "MB" "Gb" "GB"))
["=" "+" "-" "*" "/" "%" "^" "==" "!=" "<" "<=" ">" ">=" "&&" "||" "^^" "!" ".." "**"] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
[";" "," "." ":"] @punctuation.delimiter
