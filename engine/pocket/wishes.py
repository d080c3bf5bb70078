"""Wishes for a style as people word them: a wide grammar, typos and politeness included.

Every direction (a preference and where it is pushed) has commands ("keep it short"), which take polite frames,
and remarks ("that was too long"), which stand alone. `grammar` composes more of both, and `hints` has what people say
who do not name what they want. Phrasings after the bar are held out of training and are what the evaluation speaks.
"""

import random
from collections.abc import Sequence

from engine.pocket import grammar
from engine.pocket.hints import HINTS
from engine.pocket.style import DIRECTIONS, Direction, Style

# direction: commands | held-out commands || remarks | held-out remarks ; "{x}" stands for a name
_WISHES: dict[Direction, tuple[str, str]] = {
    ("length", 1): (
        "be shorter; be brief; keep it short; keep it brief; make it shorter; be more concise; answer in one sentence; write less; "
        "shorten your answers; give me short answers; use fewer words; cut it down; get to the point; be concise; say it in one line; "
        "keep your answers short; stop writing so much; make your answers shorter; trim it; only give me one sentence; talk less; "
        "stop rambling; give me less text; limit yourself to one sentence; make it brief; reply briefly; answer briefly; skip the details"
        " | keep answers brief; write shorter replies; be short; just one short sentence",
        "too long; that was too long; way too long; this is too long; that is too much text; too many words; i want short answers; "
        "i like it short; too wordy; shorter; i prefer short answers; your answers are too long; so long; too much detail; tldr; less text; "
        "that is a lot of text; shorter answers; i do not want to read so much; it was too long; brief answers; a bit long; much too long; "
        "one sentence is enough; short answers only; this was way too long for me"
        " | your reply is much too long; i prefer it brief; far too many words; that was a bit too long for me",
    ),
    ("length", 0): (
        "be longer; make it longer; write more; give me more detail; tell me more; give longer answers; be more detailed; expand on it; "
        "go into detail; give me the whole story; use more words; write longer answers; explain more; say more; add more detail; "
        "give me long answers; make your answers longer; elaborate; stop being so brief; give full answers; add details; answer at length"
        " | write longer replies; include more details; be less brief",
        "too short; that was too short; this is too short; way too short; i want longer answers; i like long answers; too brief; longer; "
        "not enough detail; more detail; that is too little; your answers are too short; i prefer long answers; longer answers; i need more detail; "
        "more text; long answers only; i want to read more; one sentence is not enough; a bit short"
        " | your reply is much too short; i prefer it long; that was a bit too short for me",
    ),
    ("emoji", 1): (
        "stop using emoji; no emoji; drop the emoji; leave out the emoji; do not use emoji; remove the emoji; skip the emoji; use no emoji; "
        "stop with the emoji; write without emoji; lose the emoji; avoid emoji; answer without emoji; stop adding emoji; cut the emoji; "
        "never use emoji; use no smileys; drop the smileys; no emojis; stop using emojis; remove the emojis; leave emojis out; omit emoji; do not add emojis; don't use emojis; "
        "stop sending emojis; no more emojis; no more emoji; don't use any emoji; no smileys"
        " | leave the emojis out; write with no emojis; stop putting emoji in; avoid using emojis",
        "i hate emoji; i do not like emoji; too many emoji; the emoji is annoying; i do not want emoji; without emoji; emoji are silly; "
        "those emojis are annoying; i dislike emojis; emoji free; no need for emoji; the emojis bother me; what is with the emoji; "
        "i don't like emojis; i hate emojis; too many emojis; without emojis; i want no emoji; the emoji is too much"
        " | i can not stand emojis; the emoji bothers me; i do not need emojis; text only without emoji",
    ),
    ("emoji", 0): (
        "use emoji; add an emoji; put in an emoji; use emojis; add emojis; include an emoji; give me emoji; write with emoji; bring back the emoji; "
        "use an emoji; end with an emoji; start using emoji; always use emoji; answer with emoji; throw in an emoji; use smileys; use some emoji; include emojis"
        " | put emojis in; write with emojis; keep using emoji",
        "i like emoji; i love emoji; where is the emoji; i want emoji; i miss the emoji; emoji are fun; more emoji; with emoji; "
        "i love emojis; i want emojis; i like emojis; the emoji was nice; more emojis; with emojis; i miss the emojis; emojis are great"
        " | i really like emojis; where are the emojis; i do miss emoji",
    ),
    ("case", 1): (
        "use lowercase; write in lowercase; use lower case; all lowercase; write everything in lowercase; no capital letters; use small letters; "
        "write in lower case; do not use capitals; stop using capitals; drop the capitals; use only lowercase; lowercase only; use only small letters; "
        "avoid capital letters; stop using capital letters; no capitals; answer in lowercase; type in lowercase; skip the capitals; no uppercase; stop using uppercase; "
        "use all lowercase letters; make it lowercase; put everything in lowercase; keep it lowercase"
        " | type everything in lower case; leave out capital letters; write only small letters; use lowercase letters",
        "i like lowercase; lowercase; i prefer lowercase; all lower case; the capitals are annoying; i do not like capitals; i hate capital letters; without capitals; "
        "lower case only; no need for capitals; i want lowercase; too many capitals; small letters; i want everything in lowercase; capital letters bother me; i don't like uppercase"
        " | i would rather see lowercase; capitals bother me; i want small letters only; everything in small letters",
    ),
    ("case", 0): (
        "use capitals; use capital letters; use normal case; write with capitals; use proper capitalization; use uppercase too; start sentences with a capital; "
        "use normal capitals; stop using lowercase; write in normal case; capitalize; use capitals again; capitalize your sentences; capitalize properly; no lowercase; "
        "stop writing in lowercase; go back to normal case; use regular case; don't write in lowercase; use upper and lower case"
        " | write with capital letters; begin sentences with capitals; return to normal case",
        "i like capitals; i want capitals; normal case; i prefer capitals; the lowercase is annoying; i do not like lowercase; where are the capitals; with capitals; "
        "lowercase looks bad; proper capitals; normal capitalization; i hate lowercase; i prefer normal case; i want normal case"
        " | lowercase bothers me; i would rather see capitals; i want capital letters",
    ),
    ("layout", 1): (
        "use bullets; use bullet points; write a list; use a list; give me bullets; make it a list; answer in bullets; answer with bullet points; format it as a list; "
        "put it in bullet points; write in bullet points; use a bullet list; use bulleted lists; list the facts; make bullet points; turn it into a list; give me a list; "
        "put it in a list; break it into bullets; answer as a list; structure it as bullets; present it as a list; use dashes; list things"
        " | write it as bullets; format answers as bullet points; make it bulleted; reply with a list",
        "i like bullets; i want bullets; bullet points; bullets; i prefer lists; a list is better; as a list; i like lists; i want a list; i prefer bullet points; "
        "with bullets; bullets are easier to read; lists are easier to read; bullet points only; in bullet points; as bullets; i want bullet points; a list would be better"
        " | i read bullets faster; i would like bullet points; i really prefer bullets; bullet points are better",
    ),
    ("layout", 0): (
        "use prose; no bullets; stop using bullets; write in prose; do not use lists; use full sentences in a row; no lists; no bullet points; drop the bullets; "
        "write a paragraph; use paragraphs; write normal text; stop making lists; avoid bullets; put it in one paragraph; answer in prose; write plain text; "
        "remove the bullets; use running text; don't use bullets; don't use bullet points; skip the bullets; stop using bullet points; no more bullets"
        " | write it as prose; stop listing things; answer in a paragraph; leave out bullets",
        "i hate bullets; i do not like lists; i prefer prose; the bullets are annoying; i want prose; prose; a paragraph is better; without bullets; i like prose; "
        "i want normal text; no need for bullets; i do not like bullet points; running text; i hate lists; i prefer paragraphs; i don't like bullets; i want paragraphs"
        " | bullets bother me; i would like prose; i prefer plain text in a paragraph",
    ),
    ("question", 1): (
        "stop asking questions; no questions; do not ask me questions; drop the question; stop asking me things; leave out the question; no closing question; "
        "do not end with a question; skip the question; remove the question; stop asking if i want more; stop ending with a question; avoid questions; "
        "do not ask if i want to know more; no question at the end; cut the question; don't ask me anything; never ask questions; don't end with a question; "
        "stop asking me questions; no follow up questions; don't ask follow up questions; stop with the questions; don't ask questions; no more questions; "
        "stop asking questions at the end; quit asking questions; leave off the question"
        " | leave the question out; do not finish with a question; stop asking me at the end; end without a question",
        "i hate the question; the question is annoying; i do not like the question; too many questions; without a question; i do not want questions; "
        "the question at the end is annoying; i don't want to be asked; no need to ask; the closing question is annoying; i dislike the question at the end; i will ask if i want more; "
        "why do you always ask; your questions are annoying; i hate questions; the last question is not needed; i don't need the question"
        " | the final question bothers me; i do not need the question at the end; that question is not needed; i hate the closing question",
    ),
    ("question", 0): (
        "ask me a question; end with a question; ask a question at the end; add a question; ask if i want more; finish with a question; ask me something; "
        "ask questions; close with a question; ask me if i want to know more; always ask a question; put a question at the end; start asking questions; add a closing question; "
        "ask a follow up question; ask me questions; keep asking questions; bring back the question"
        " | finish by asking me something; conclude with a question; include a question",
        "i like the question; i like questions; where is the question; i want a question at the end; i miss the question; i like it when you ask; i want questions; with a question; "
        "the question was nice; i want to be asked; i want a closing question; a question at the end is nice; i like being asked; i liked the question"
        " | i like a question at the end; i do miss the question; i love it when you ask",
    ),
    ("name", 1): (
        "call me {x}; use my name {x}; say my name {x}; address me as {x}; use my name, it is {x}; call me by my name {x}; start calling me {x}; refer to me as {x}; "
        "use the name {x}; greet me as {x}; say {x} when you answer; always call me {x}; remember my name is {x}; address me by my name {x}; use my name which is {x}; just call me {x}; "
        "use {x} as my name; include my name {x}; call me {x} in your answers; "
        "put my name {x} in; mention my name {x}; name me {x}; use {x} when you talk to me; take {x} as my name; make sure to use my name {x}; make sure you call me {x}; "
        "remember to say my name {x}; remember that i am {x}; call me by my nickname {x}; write my name {x}; write it for {x}; say {x} to me; call me {x}, that is my name; note that i am {x}"
        " | make sure to address me as {x}; call me by the name {x}; use {x} for my name; remember to call me {x}",
        "my name is {x}; i am {x}; i'm {x}; you can call me {x}; the name is {x}; it is {x}; my friends call me {x}; my name is {x}, use it; i am called {x}; you may call me {x}; "
        "people call me {x}; i go by {x}; {x} is my name; i want you to call me {x}; no, my name is {x}; i like to be called {x}; "
        "this is {x}; hello, i am {x}; my brother calls me {x}; my first name is {x}; my full name is {x}; i prefer to be called {x}; i want to be called {x}; {x} is what people call me; "
        "i would like you to call me {x}; i want to hear my name {x}; my friends say {x}; all people call me {x}; my nickname is {x}; i am known as {x}; i'm called {x}; they call me {x}"
        " | everyone calls me {x}; i would like to be called {x}; my real name is {x}; hi, i am {x}",
    ),
    ("name", 0): (
        "stop using my name; do not use my name; leave out my name; drop my name; do not call me by name; stop saying my name; no name; skip my name; avoid my name; "
        "remove my name; never use my name; don't say my name; don't use my name; stop calling me by my name; forget my name; leave my name out; no names; stop calling me that; answer without my name"
        " | omit my name; stop repeating my name; do not address me by name",
        "i do not like my name; i hate hearing my name; the name is annoying; without my name; no need to use my name; i do not want my name there; using my name is creepy; "
        "you say my name too much; i don't want you to use my name; my name is private; i do not want to be called by name; i don't like it when you use my name; saying my name is annoying"
        " | i dislike hearing my name; my name is not needed; there is no need to say my name",
    ),
    ("tone", 1): (
        "be more enthusiastic; be enthusiastic; sound excited; be excited; show some excitement; be more cheerful; be cheerful; be more lively; use exclamation marks; "
        "sound happy; be more fun; show enthusiasm; be livelier; sound more excited; cheer up; be more energetic; add some energy; put some energy into it; be happier; "
        "show more energy; sound enthusiastic; be more excited; act excited; use more exclamation marks; add exclamation marks; bring more energy"
        " | show more excitement; sound more enthusiastic; be upbeat and excited; write with more enthusiasm",
        "too boring; that was boring; too calm; too flat; i want more excitement; you sound bored; i like enthusiasm; more energy; too dull; more enthusiasm; so boring; "
        "i want enthusiasm; you sound so flat; that is dull; more excitement; i prefer cheerful answers; not excited enough; i like excited answers; i want more energy"
        " | you are too calm; you never sound excited; your answers are boring; i want a more enthusiastic tone",
    ),
    ("tone", 0): (
        "calm down; be calm; be calmer; sound calm; tone it down; stop being so excited; be less enthusiastic; no exclamation marks; be less excited; relax; "
        "stop shouting; use a calm tone; stop using exclamation marks; be more calm; drop the excitement; be quieter; sound calmer; be less cheerful; drop the exclamation marks; "
        "keep calm; stay calm; be neutral; cut the enthusiasm; less enthusiasm; don't use exclamation marks"
        " | be less energetic; speak calmly; avoid exclamation marks; write in a calm tone",
        "too excited; too loud; too enthusiastic; i want calm answers; that was too much energy; you sound too excited; too cheerful; i prefer calm; less excitement; "
        "too much energy; too many exclamation marks; i like it calm; that was too excited; i hate exclamation marks; i prefer a calm tone; so loud; i want a calm tone"
        " | you are too excited; i would like a calm tone; the exclamation marks bother me",
    ),
    ("register", 1): (
        "be formal; be more formal; use formal language; write formally; sound professional; be professional; be polite; be more polite; use a formal tone; speak formally; "
        "be more professional; use proper language; stop being so casual; write in a formal style; be less casual; sound more formal; avoid slang; no slang; stop using slang; "
        "keep it formal; keep it professional; use polite language; address me formally; don't be so casual; make it formal"
        " | answer formally; write more formally; use a more formal style; talk to me formally",
        "too casual; that was too casual; i want formal answers; too informal; i prefer formal language; not formal enough; that is not professional; i like it formal; "
        "more formal; this is for work; too much slang; formal language only; you are too casual; not polite enough; a formal tone is better; formal answers only; i want a formal tone; i prefer a formal tone"
        " | i would prefer a formal tone; your tone is too casual; that sounded too casual; i would rather you were formal",
    ),
    ("register", 0): (
        "be casual; be more casual; be informal; talk like a friend; use casual language; be less formal; relax your language; sound casual; write casually; stop being so formal; "
        "use a casual tone; speak casually; talk normally; be more relaxed; use informal language; sound like a friend; loosen up; keep it casual; make it casual; talk to me like a friend; "
        "don't be so formal; drop the formal tone; be friendlier"
        " | answer casually; write more casually; use a more casual style; talk like a buddy",
        "too formal; that was too formal; i want casual answers; too stiff; i prefer casual language; i like it casual; more casual; so stiff; you are too formal; too polite; "
        "casual is better; we are friends; that is so formal; casual answers only; you sound stiff; you sound too formal; i prefer a casual tone; i want a casual tone"
        " | i would prefer a casual tone; your tone is too formal; that sounded too formal",
    ),
    ("units", 1): (
        "use imperial units; use pounds and feet; use imperial; give it in imperial; use american units; switch to imperial; convert to imperial; use miles and pounds; "
        "use us units; write imperial units; use feet; use pounds; use fahrenheit; answer in imperial units; stop using metric; no metric; use feet and miles; show imperial units; "
        "give me imperial units; use the imperial system; use imperial measurements; drop the metric units; don't use metric; avoid metric units; use miles; use pounds instead of kilos"
        " | give measurements in imperial; change to imperial units; measure in pounds and feet; stick to imperial units",
        "i use imperial; i do not know metric; imperial units; i am american; i want imperial units; imperial; i prefer imperial units; i think in pounds; i don't understand metric; "
        "metric is confusing; in imperial units; i think in feet; imperial is better; i prefer pounds and feet; i live in america; imperial only; pounds and feet; i want pounds and feet; i like imperial units"
        " | i only understand imperial; i need imperial units; i would like imperial units; metric means nothing to me",
    ),
    ("units", 0): (
        "use metric units; use metric; use kilos and meters; give it in metric; switch to metric; convert to metric; use kilometers and kilos; use celsius; use kilograms; use meters; "
        "answer in metric units; stop using imperial; no imperial; show metric units; give me metric units; use the metric system; use metric measurements; drop the imperial units; "
        "don't use imperial; avoid imperial units; use european units; use kilos instead of pounds"
        " | give measurements in metric; change to metric units; measure in kilos and meters",
        "i use metric; i do not know imperial; metric units; i am european; i want metric units; metric; i prefer metric units; i think in kilos; i don't understand imperial; "
        "imperial is confusing; in metric units; i think in meters; metric is better; i live in europe; metric only; kilos and meters; i like metric units"
        " | i only understand metric; i need metric units; imperial means nothing to me",
    ),
    ("summary", 1): (
        "start with a summary; give me a summary first; begin with a summary; put a summary first; add a summary; summarize first; start with a one line summary; give a short summary first; "
        "lead with a summary; open with a summary; write a summary first; put the summary at the top; begin with a one line summary; summarize it at the top; include a summary; "
        "start with in short; first summarize; give the summary up front; start by summarizing; use a summary line; add a summary at the top; give me a one line summary first; begin by summing up"
        " | put one summary line first; open with a one line summary; start your answers with a summary; place a summary on top",
        "i want a summary; i want a summary first; where is the summary; summary first; i like summaries; a summary first; i need a summary; with a summary; i prefer a summary first; "
        "one line summary first; a summary would help; a summary at the top; i like a summary at the start; i want the summary first; i miss the summary"
        " | i would like a summary first; a summary at the start helps; i need the summary at the top; i want a one line summary at the start",
    ),
    ("summary", 0): (
        "drop the summary; no summary; skip the summary; do not summarize; leave out the summary; remove the summary; stop summarizing; do not start with a summary; stop giving summaries; "
        "cut the summary; no summaries; stop the summary; avoid summaries; answer without a summary; don't give me a summary; don't summarize; stop adding a summary; no summary line; "
        "go without the summary; no more summaries; never summarize"
        " | leave the summary out; do not begin with a summary; omit the summary",
        "i do not need the summary; the summary is annoying; i hate summaries; without a summary; no need for a summary; i do not want a summary; the summary is not needed; i don't like the summary; "
        "the first line is annoying; summaries are annoying; i do not like summaries; i don't want summaries; the summary is useless"
        " | the summary bothers me; i dislike the summary; that summary is not needed",
    ),
    ("numbers", 1): (
        "write numbers as words; spell out numbers; use words for numbers; no digits; write out the numbers; spell the numbers; do not use digits; numbers in words; stop using digits; "
        "write the numbers in words; use number words; spell out the digits; avoid digits; put numbers in words; use words instead of digits; spell numbers out; spell out all numbers; "
        "write out numbers; don't use digits; write all numbers as words; drop the digits; turn the numbers into words; say numbers in words"
        " | spell every number out; use no digits; write each number as a word; replace digits with words",
        "i do not like digits; i want numbers in words; numbers as words; i prefer words for numbers; i hate digits; digits are ugly; the digits are annoying; without digits; "
        "i prefer spelled out numbers; spelled out numbers; i want number words; words for numbers; i like numbers as words; digits are annoying; i don't like digits; words not digits"
        " | digits bother me; i would like numbers in words; i want spelled out numbers; numbers should be words",
    ),
    ("numbers", 0): (
        "use digits; write numbers as digits; write digits; use numerals; write numbers with digits; stop spelling numbers; numbers in digits; put numbers as digits; use figures; "
        "use digits for numbers; do not spell out numbers; use digits instead of words; show digits; stop writing numbers as words; write the numbers in digits; don't spell out numbers; "
        "give me digits; turn the words into digits; use real numbers; stop spelling out numbers"
        " | write each number in digits; give numbers as digits; replace number words with digits",
        "i like digits; i want digits; numbers as digits; i prefer digits; digits are easier to read; with digits; number words are annoying; i do not like number words; digits only; "
        "digits are better; i want numerals; i prefer numerals; digits not words; spelled out numbers are annoying; i hate number words"
        " | number words bother me; i would like digits; numbers should be digits",
    ),
    ("language", 1): (
        "answer in spanish; speak spanish; use spanish; write in spanish; reply in spanish; switch to spanish; talk in spanish; say it in spanish; translate it to spanish; "
        "respond in spanish; tell me in spanish; talk to me in spanish; speak to me in spanish; change to spanish; stop using english; no english; use only spanish; always answer in spanish; "
        "put it in spanish; give it to me in spanish; write everything in spanish; spanish please; speak in spanish; don't use english; en español"
        " | give your answers in spanish; say everything in spanish; communicate in spanish; respond to me in spanish",
        "i speak spanish; in spanish; spanish; i want spanish; i prefer spanish; i do not speak english; i am from spain; i understand spanish better; i am learning spanish; "
        "my language is spanish; i want it in spanish; spanish is better; i prefer spanish answers; español; spanish only; i like spanish; i want answers in spanish; i don't understand english"
        " | i would like spanish; i understand only spanish; i need it in spanish; spanish is my language",
    ),
    ("language", 0): (
        "answer in english; speak english; use english; write in english; reply in english; switch to english; talk in english; say it in english; translate it to english; "
        "respond in english; tell me in english; talk to me in english; speak to me in english; change to english; stop using spanish; no spanish; use only english; always answer in english; "
        "put it in english; give it to me in english; write everything in english; english please; speak in english; don't use spanish; back to english"
        " | give your answers in english; say everything in english; communicate in english",
        "i speak english; in english; english; i want english; i prefer english; i do not speak spanish; i am from england; i understand english better; my language is english; "
        "i want it in english; english is better; i prefer english answers; english only; i don't understand spanish; i like english; i want answers in english"
        " | i would like english; i understand only english; english is my language",
    ),
}  # fmt: skip

_FRAMES = (
    "{c}", "{c}", "{c}", "please {c}", "{c} please", "{c}, please", "could you {c}?", "can you {c}?", "i want you to {c}",
    "next time {c}", "{c} from now on", "from now on {c}", "{c} next time", "you should {c}", "try to {c}", "{c}, thanks", "{c} thank you",
    "hey, {c}", "hmm, {c}", "ok but {c}", "i'd like you to {c}", "would you {c}?", "it would be nice if you {c}", "{c}!", "in future {c}", "{c} in the future",
    "i would love you to {c}", "when you answer, {c}", "for the next answers {c}", "{c}, will you?", "{c} if you can", "just {c}", "maybe {c}", "you need to {c}", "you must {c}",
    "please {c}", "please {c}", "{c} please", "{c} please", "{c}, please", "{c} when you answer me", "i told you to {c}", "one thing: {c}", "in all answers {c}", "could you maybe {c}?", "thanks but {c}",
    "nice, but {c}", "good, but {c}", "it would help to {c}", "i ask you to {c}", "i would like you to {c}", "in your answers {c}", "dear bot, {c}", "{c}, ok?", "{c}, can you?", "again, {c}",
)  # fmt: skip
_HELD_OUT_FRAMES = ("for me, {c}", "i need you to {c}", "in your next answers {c}", "{c}, would you?", "kindly {c}")
_REMARK_FRAMES = (
    "{c}",
    "{c}",
    "{c}",
    "{c}",
    "{c}, please",
    "{c} please",
    "hmm, {c}",
    "sorry, {c}",
    "well, {c}",
    "{c}!",
    "hey, {c}",
    "ok but {c}",
    "{c} for me",
    "no, {c}",
    "nice, but {c}",
    "thanks but {c}",
    "honestly, {c}",
    "to be honest {c}",
    "actually, {c}",
    "you know, {c}",
    "good answer but {c}",
    "again, {c}",
    "{c}, you know",
    "for my taste {c}",
)
_JOINS = (" and ", ", ", ". ", " and also ", "; ", ", and ")

NAMES = (
    "Ana Leo Max Mia Tom Eva Sam Zoe Ben Lia Kai Ida Jon Amy Rob Sue Tim Joe Pat Kim Luis Rosa Hugo Nora Otto Vera Ivan Lena Omar Aida Paul Jane Mark "
    "Lucy Alex Emma Carl Anna Peter Maria David Laura Simon Clara Oscar Julia Bruno Alice Felix Diana Kuro Momo Nina Olga Theo Finn Gina Hans Iris "
    "Adam Agnes Albert Alma Amelia Amir Andrea Anton Arthur Ava Beatrix Bella Bernd Boris Brad Bridget Caleb Carmen Cedric Charlotte Chris Chloe Claire Clark Clive Conrad Cora Craig "
    "Daisy Dana Daniel Dean Derek Dolores Doris Doug Dylan Edgar Edith Edward Elena Elias Eliza Ella Ellen Elmer Elsie Emil Emily Enzo Erin Ernst Esther Ethan Eugene Fabian Faith Fatima "
    "Flora Frank Fred Gabriel George Gerald Gilbert Gloria Grace Grant Greg Gustav Guy Hank Hannah Harold Harry Hazel Heidi Helen Helga Henry Herman Holly Howard Hubert Hue Ian Igor Ilse "
    "Ingrid Irene Isaac Isabel Jack Jacob James Jasper Jean Jeff Jenny Joan Joel John Joseph Judith Jules Karen Karl Katherine Keith Kevin Klaus Kurt Lars Laurel Leah Leonard Lewis Lily Linda "
    "Lisa Lloyd Lola Louis Luke Lydia Mabel Magnus Malcolm Marcus Margot Martha Martin Matilda Matthew Maud Max Megan Mike Mila Miriam Molly Mona Monica Nadia Naomi Nathan Neil Nick Nicole "
    "Noah Noel Norma Oliver Olive Orson Oswald Pamela Patrick Paula Pedro Percy Petra Phil Phoebe Pia Priya Quentin Rachel Ralph Ramon Ray Rebecca Regina Rene Rhys Richard Rita Robin Roger "
    "Roland Roman Ron Rose Roy Ruby Rufus Russell Ruth Sally Salma Sandra Sarah Scott Sean Selina Seth Shane Sheila Sigrid Silvia Sonia Sophie Stella Stefan Steve Susan Sven Sylvia Tanya Tara "
    "Ted Teresa Thelma Thomas Tina Toby Todd Tony Trent Troy Ulf Ulrich Una Ursula Valerie Vanessa Vernon Vicky Vincent Viola Virgil Vivian Wade Walter Wanda Wendy Wilbur Will Xenia Yara Yusuf Yves Zelda"
).split()  # fmt: skip
HELD_OUT_NAMES = "Greta Nils Astrid Hugh Elsa Victor Selma Erik".split()  # none that an invented name can be


def _split(text: str) -> tuple[list[str], list[str]]:
    trained, held_out = text.split("|")
    return [p.strip() for p in trained.split(";") if p.strip()], [p.strip() for p in held_out.split(";") if p.strip()]


COMMANDS = {d: _split(commands) for d, (commands, _) in _WISHES.items()}
REMARKS = {d: _split(remarks) for d, (_, remarks) in _WISHES.items()}
assert set(_WISHES) == set(DIRECTIONS)
_HELD_OUT = [phrase for table in (COMMANDS, REMARKS) for _, phrases in table.values() for phrase in phrases]
COMPOSED_COMMANDS = grammar.commands(_HELD_OUT)
COMPOSED_REMARKS = grammar.remarks(_HELD_OUT)
_COMPOSED_SHARE = 0.6  # of wishes whose direction has composed phrasings


def _typo(text: str, rng: random.Random) -> str:
    """Make one typing slip inside a word of four letters or more: a letter dropped, doubled or swapped."""
    spots = [i for i in range(1, len(text) - 2) if text[i - 1 : i + 3].isalpha()]
    if not spots:
        return text
    i = rng.choice(spots)
    kind = rng.randrange(3)
    if kind == 0:
        return text[:i] + text[i + 1 :]
    return text[:i] + (text[i] + text[i:] if kind == 1 else text[i + 1] + text[i] + text[i + 2 :])


def _dressed(text: str, rng: random.Random) -> str:
    text = _typo(text, rng) if rng.random() < 0.12 else text
    text = text[:1].upper() + text[1:] if rng.random() < 0.35 else text
    return text + "." if rng.random() < 0.25 and text[-1].isalnum() else text


def _command(direction: Direction, rng: random.Random) -> str:
    is_composed = COMPOSED_COMMANDS[direction] and rng.random() < _COMPOSED_SHARE
    return rng.choice(COMPOSED_COMMANDS[direction] if is_composed else COMMANDS[direction][0])


def _remark(direction: Direction, rng: random.Random) -> str:
    is_composed = COMPOSED_REMARKS[direction] and rng.random() < _COMPOSED_SHARE
    return rng.choice(COMPOSED_REMARKS[direction] if is_composed else REMARKS[direction][0])


def _bare(direction: Direction, rng: random.Random) -> str:
    if rng.random() < 0.55:
        return _framed(rng.choice(_FRAMES), _command(direction, rng), rng)
    return _framed(rng.choice(_REMARK_FRAMES), _remark(direction, rng), rng)


def _framed(frame: str, text: str, rng: random.Random) -> str:
    return text if rng.random() < 0.3 else frame.format(c=text)


def _core(direction: Direction, rng: random.Random) -> str:
    return _command(direction, rng) if rng.random() < 0.55 else _remark(direction, rng)


def wish(directions: Sequence[Direction], name: str, rng: random.Random, hint_share: float = 0.0) -> str:
    """Draw a message that asks for one or several directions, from the training phrasings.

    A wish for one direction is a hint in `hint_share` of the draws. Names are filled in last so that typos never reach
    them.
    """
    if len(directions) == 1 and rng.random() < hint_share:
        text = rng.choice(HINTS[directions[0]])
    elif len(directions) == 1:
        text = _bare(directions[0], rng)
    else:
        text = rng.choice(_JOINS).join(_core(d, rng) for d in directions)
        text = rng.choice(("{c}", "{c}", "please {c}", "{c} please", "hey, {c}")).replace("{c}", text)
    return _dressed(text.replace("{x}", "\0"), rng).replace("\0", name)


def held_out_wish(direction: Direction, name: str, rng: random.Random) -> str:
    """Draw a message in a phrasing never trained: held-out words, or a known command in a held-out frame."""
    pools = [COMMANDS[direction][1], REMARKS[direction][1]]
    pools.append([f.format(c=c) for f in _HELD_OUT_FRAMES for c in COMMANDS[direction][0] if "{" not in c])
    return rng.choice(rng.choice([p for p in pools if p])).replace("{x}", name)


def apply(style: Style, directions: Sequence[Direction], name: str) -> Style:
    """Return the style after a wish was granted; later directions win."""
    from engine.pocket.style import PREFERENCES

    for preference, side in directions:
        value = PREFERENCES[preference][side]
        style = style.with_value(preference, name if value == "*" else value)
    return style
