; Written by `python editors/highlighting.py`.

["as" "block" "buffer" "const" "dim" "expect" "export" "fn" "frozen" "import" "label" "layer" "model" "param" "require" "role" "tie" "unused"] @keyword
["else" "for" "if" "in" "return"] @keyword.control
["and" "not" "or"] @keyword.operator
["false" "inf" "none" "true"] @constant.builtin
["!=" "%" "*" "**" "+" "-" "->" ".." "/" "//" "<" "<=" "=" "==" ">" ">=" "?" "|>" "~"] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," "." ":"] @punctuation.delimiter

(comment) @comment
(documentation) @comment.documentation
(string) @string
(ellipsis) @operator
[(int) (real)] @number
(dtype) @type.builtin
(definition . (name) @type.definition)
(entry . (name) @variable.parameter)
(argument (name) @variable.parameter)
(segment) @property
(address [(place (name) @property) (subscript (place (name) @property))])
(dotted . [(place (name) @property) (subscript (place (name) @property))])
([(imported . (name) @type) (callee (name) @type) (model (name) @type)] (#match? @type "^[A-Z]"))
([(imported . (name) @function) (callee (name) @function)] (#not-match? @function "^[A-Z]"))
([(call . (place (name) @function)) (step . (place (name) @function))] (#not-match? @function "^[A-Z]"))
([(call . (place (name) @type)) (step . (place (name) @type))] (#match? @type "^[A-Z]"))
