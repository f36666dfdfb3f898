import CurlClient
import Foundation
import Testing

struct HTTPDateTests {
    @Test func dates() {
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            #expect(HTTPDate.secondsSince1970(text) == 784_111_777, "\(text)")
        }
        for text in ["", "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "1994", "now"] {
            #expect(HTTPDate.secondsSince1970(text) == nil, "\(text)")
        }
    }

    /// Found by Deploy/dev/fuzz: Foundation's formatter traps on it.
    @Test func aDateOverWhichFoundationTrapsIsRefused() {
        #expect(HTTPDate.secondsSince1970("S 06\u{05B1}ov 4 22:4:7 G") == nil)
    }

    /// A date has a resolution of one second, and may have been written at any time during the exchange: differences within that uncertainty count as
    /// none.
    @Test func clocks() {
        let date = Date(timeIntervalSince1970: 784_111_777)
        let text = "Sun, 06 Nov 1994 08:49:37 GMT"
        #expect(HTTPDate.clockAhead(text, from: date, to: date + 0.5) == .zero)
        #expect(HTTPDate.clockAhead(text, from: date + 0.9, to: date + 3) == .zero)
        #expect(HTTPDate.clockAhead(text, from: date - 3, to: date) == .zero)
        #expect(HTTPDate.clockAhead(text, from: date - 11, to: date - 10) == .seconds(10))
        #expect(HTTPDate.clockAhead(text, from: date + 11, to: date + 12) == .seconds(-10))
        #expect(HTTPDate.clockAhead("x", from: date, to: date) == nil)
    }
}
