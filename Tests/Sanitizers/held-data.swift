// A correct program: all that it makes is held by a global until it ends. The leak sanitizer reports it all the same, because Data and enums
// with several payloads keep marks in the upper bits of their pointers, by which it does not know them.
import Foundation

struct Row {
    let data: Data
    let other: Data?
}

enum Kind {
    case one(Row)
    case two(Row, Row)
    case none
}

nonisolated(unsafe) var held: [Kind] = []

func fill() {
    for number in 0..<100 {
        let text = Data(repeating: 7, count: 40 + number).base64EncodedString()
        let row = Row(data: Data(base64Encoded: text) ?? Data(), other: Data(repeating: 1, count: 100))
        held += [.one(row), .two(row, row)]
    }
}

fill()
