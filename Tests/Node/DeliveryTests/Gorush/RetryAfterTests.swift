import Testing
import Core

@testable import Delivery

struct RetryAfterTests {
    /// 1994-11-06 08:49:07.
    private let now = Timestamp(rawValue: 784_111_747 * 1_000_000_000)

    @Test(arguments: [
        ("0", Duration.zero), ("120", .seconds(120)), ("Sun, 06 Nov 1994 08:49:37 GMT", .seconds(30)),
        ("Sun, 06 Nov 1994 08:49:07 GMT", .zero), ("Sat, 05 Nov 1994 08:49:37 GMT", .zero), ("Thu, 01 Jan 1970 00:00:00 GMT", .zero),
        ("Tue, 29 Feb 2000 08:49:07 GMT", .seconds(1941 * 86_400)), ("Sunday, 06-Nov-94 08:49:37 GMT", .seconds(30)),
        ("06 Nov 1994 08:49:37 GMT", .seconds(30)), ("Sun, 06 Nov 1994 09:49:37 CET", .seconds(30)),
    ])
    func understood(text: String, expected: Duration) {
        #expect(RetryAfter.parse(text, now: now) == expected)
    }

    @Test func farAwayDoesNotTrap() {
        #expect(RetryAfter.parse("Fri, 31 Dec 9999 23:59:59 GMT", now: now).map { $0 > .seconds(86_400) } == true)
        #expect(RetryAfter.parse("999999999999999999", now: now).map { $0 > .seconds(86_400) } == true)
    }

    @Test(arguments: [
        "", "-1", "1.5", "+1", " 1", "soon", "9999999999999999999", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
    ])
    func notUnderstood(text: String) {
        #expect(RetryAfter.parse(text, now: now) == nil)
    }
}
