// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationNetworking
import TerminalDisplay

/// A command-line downloader, whose options `opget --help` describes.
@main
struct Opget {
    static func main() {
        // Otherwise, a file or a connection could get the number of a closed stream, and opget would write its messages
        // there. A write to these descriptors still fails.
        for stream: Int32 in 0...2 where fcntl(stream, F_GETFD) == -1 { _ = open("/dev/null", O_RDONLY) }
        // A write to a broken pipe, or beyond a file size limit, then returns an error instead of ending the program.
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        let command = Command(CommandLine.arguments.dropFirst())
        let display = display(for: command)
        let interruption = TerminalInterruption(of: display)
        interruption.listen()
        switch command {
        case .help: print(HelpText.text, terminator: "")
        case .version: print("opget \(Settings.version)")
        case .refuse(let problems): refuse(problems)
        case .download(let settings): download(settings, display, interruption)
        }
    }

    /// Returns a display with bars on standard error, unless log lines appear there too.
    private static func display(for command: Command) -> TerminalDisplay {
        var style = DescriptorOutput.standardError.style
        if case .download(let settings) = command, settings.json == .standardOutput, isatty(1) == 1 {
            style.isLive = false
        }
        return TerminalDisplay(output: DescriptorOutput.standardError, style: style)
    }

    private static func refuse(_ problems: [String], limit: Int = 20) -> Never {
        for problem in problems.prefix(limit) { say("opget: \(DisplayText.cleaned(problem))") }
        if problems.count > limit { say("opget: and \(problems.count - limit) more") }
        say("Nothing was downloaded. Try 'opget --help'.")
        exit(ExitStatus.usage.rawValue)
    }

    private static func say(_ line: String) { DescriptorOutput.standardError.write(line + "\n") }

    private static func download(_ settings: Settings, _ display: TerminalDisplay, _ interruption: TerminalInterruption)
        -> Never
    {
        _ = SegmentedFile.mask
        var reader = ItemReader { url throws(NetworkError) in try Client.request("GET", url, settings) }
        reader.read(settings)
        guard reader.problems.isEmpty else { refuse(reader.problems) }
        var log: RunLog?
        if let place = settings.json {
            log = RunLog(place)
            if log == nil { refuse(["The log cannot be written. Give --json a path in an existing directory."]) }
        }
        if reader.repeatedCount > 0, !settings.isQuiet {
            display.say("URLs that occur more than once, and are downloaded once: \(reader.repeatedCount).")
        }
        let reporter = Reporter(reader.items, settings, log: log, display: display)
        let runner = Runner(reader.items, Client(settings), reporter)
        interruption.stop { runner.interrupt($0) }
        Task {
            let status = await runner.run()
            if let signal = status.signal { TerminalSignals.endProcess(by: signal) }
            exit(status.rawValue)
        }
        // On Linux, signals would interrupt this thread in `dispatchMain()`.
        while true { pause() }
    }
}
