// Foundation loses its buffer when it reads an empty file: the leak sanitizer reports 100 blocks.
import Foundation

let path = NSTemporaryDirectory() + "empty-\(getpid())"
_ = FileManager.default.createFile(atPath: path, contents: nil)
for _ in 0..<100 { _ = FileManager.default.contents(atPath: path) }
try? FileManager.default.removeItem(atPath: path)
